"""What a center keeps and signs: its key, its ledger, files of lines, sealed messages."""
