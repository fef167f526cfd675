"""Other people's methods, for comparison; they import primo, primo never imports them."""
