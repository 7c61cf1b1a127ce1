package hostd

import (
	"encoding/json"
	"fmt"
	"os"

	"scaffold.dev/scaffold/internal/bpf/ktime"
	"scaffold.dev/scaffold/internal/core/session"
)

// A Decision is a line of the journal.
type Decision struct {
	At   int64  `json:"at"` // CLOCK_MONOTONIC, ns: that of all hosts on one machine
	Host string `json:"host"`
	session.Entry
}

// openJournal begins to write the decisions down; the engine's hook is nil without one.
func (d *daemon) openJournal() error {
	if d.cfg.Journal == "" {
		return nil
	}
	file, err := os.OpenFile(d.cfg.Journal, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	lines, broken := json.NewEncoder(file), false
	d.journal = func(e session.Entry) {
		err := lines.Encode(Decision{int64(ktime.Now()), d.cfg.Name, e})
		if err != nil && !broken {
			broken = true
			d.log.Warn("the journal has gaps", "file", d.cfg.Journal, "error", err)
		}
	}
	return nil
}
