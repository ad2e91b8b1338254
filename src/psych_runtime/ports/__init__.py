"""The interfaces that a consumer may implement; everyone may import them."""
