package cli

import (
	"fmt"
	"log/slog"
	"strconv"

	"github.com/spf13/pflag"

	"scaffold.dev/scaffold/internal/priority"
)

// nice is the flag of daemons whose work others wait for: as ordinary programs they would wait, beside programs that
// wake each other all the time, for tens of milliseconds.
type nice int

const defaultNice nice = -10

func addNice(set *pflag.FlagSet) *nice {
	n := defaultNice
	set.Var(&n, "nice", "nice level, -20 to 19, of the daemon and of the session that it leads: the lower, the sooner it gets a processor")
	return &n
}

// String, Set and Type make it a flag that refuses other levels at once.
func (n *nice) String() string { return fmt.Sprint(int(*n)) }

// Set implements pflag.Value.
func (n *nice) Set(s string) error {
	level, err := strconv.Atoi(s)
	if err != nil || level < priority.Most || level > priority.Least {
		return fmt.Errorf("want a level of %d to %d", priority.Most, priority.Least)
	}
	*n = nice(level)
	return nil
}

// Type implements pflag.Value.
func (n *nice) Type() string { return "level" }

// take gives the process its level; where it may not it works on as it is.
func (n *nice) take(log *slog.Logger) {
	if err := priority.Set(int(*n)); err != nil {
		log.Info("other programs may keep this daemon waiting: it may not raise its priority", "nice", int(*n), "error", err)
	}
}
