"""An order-statistic tree in the items of one partition; `ranking` is what structures compose."""
