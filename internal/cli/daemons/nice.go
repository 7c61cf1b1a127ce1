package daemons

import (
	"fmt"
	"log/slog"
	"strconv"

	"github.com/spf13/pflag"

	"scaffold.dev/scaffold/internal/linux/priority"
)

// nice is the flag of daemons whose work others wait for. It is 0 unless somebody decides: switches that forward in a
// process of their own lost packets beside daemons at -10 (bench/README.md).
type nice int

func addNice(set *pflag.FlagSet) *nice {
	var n nice
	set.Var(&n, "nice", "nice level, -20 to 19, of the daemon and of the session that it leads: the lower, the sooner it gets a processor (0: as it was started)")
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
	if *n == 0 {
		return
	}
	if err := priority.Set(int(*n)); err != nil {
		log.Info("other programs may keep this daemon waiting: it may not raise its priority", "nice", int(*n), "error", err)
	}
}
