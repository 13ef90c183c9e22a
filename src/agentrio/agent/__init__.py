"""What an app declares: tools and what they are given."""
