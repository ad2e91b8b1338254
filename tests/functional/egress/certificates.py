"""A certificate authority for one test, and what both sides of a TLS connection make of it."""

import ssl
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

__all__ = ["Authority"]


class Authority:
    """Vouches for one name; `client` trusts it, `server` shows its certificate."""

    def __init__(self, name: str) -> None:
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        now = datetime.now(UTC)
        certificate = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(subject)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=1))
            .not_valid_after(now + timedelta(days=1))
            .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
            .sign(key, hashes.SHA256())
            .public_bytes(serialization.Encoding.PEM)
        )
        private = key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        self.certificate = certificate
        self.names: list[str | None] = []
        self.client = ssl.create_default_context(cadata=certificate.decode())
        self.server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.server.sni_callback = self._hear
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "both.pem"
            file.write_bytes(private + certificate)
            self.server.load_cert_chain(file)

    def _hear(self, _socket: object, name: str | None, _context: ssl.SSLContext) -> None:
        """Note the server name that a client asks for."""
        self.names.append(name)
