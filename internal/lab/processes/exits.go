package processes

import "sync"

// exits is how what this process started has ended, by NODE/PROGRAM.
type exits struct {
	mu    sync.Mutex
	last  map[string]*string // of what was started last; empty while it runs
	ended map[string]bool
}

// begin notes that something was started, whatever was known of one of its name before; end is called when it has ended.
// That of an earlier one may come late: a cgroup is empty when its processes have died, and who waits for them hears of it
// some time after that. It says nothing of the one that was started since.
func (e *exits) begin(key string) (end func(how string)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.last == nil {
		e.last, e.ended = map[string]*string{}, map[string]bool{}
	}
	mine := new(string)
	e.last[key] = mine
	delete(e.ended, key)
	return func(how string) {
		e.mu.Lock()
		defer e.mu.Unlock()
		if e.last[key] == mine {
			*mine, e.ended[key] = how, true
		}
	}
}

// of is how something has ended, if it has.
func (e *exits) of(key string) (how string, ended bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.ended[key] {
		return "", false
	}
	return *e.last[key], true
}
