"""What people bring, packed, read and checked. Executes none of it and knows no network."""
