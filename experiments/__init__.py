"""The instrument: studies, their designs and runs, statistics, figures and reports."""
