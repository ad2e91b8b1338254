"""Pure parts: canonical form, codec, fold, conversation, validation. No IO, clock or randomness."""
