"""The certificate authority of a council: issue, show and verify, without a network and without a service."""
