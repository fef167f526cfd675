"""Runs on simulated and real data; they import primo, primo never imports them."""
