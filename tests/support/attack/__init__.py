"""What an attacker types into a wiki: payloads, the places in a text where they stand; and what a browser runs."""
