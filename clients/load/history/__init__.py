"""What clients asked, what they were told and when; and whether one request after the other could have said so."""
