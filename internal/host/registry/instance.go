package registry

import (
	"fmt"
	"time"

	"scaffold.dev/scaffold/internal/bpf/host"
	"scaffold.dev/scaffold/internal/core/serving"
)

// An instance is one triple that this host's sockets serve.
type instance struct {
	trusted bool   // found in place by a new daemon: it serves until a check says otherwise
	drained bool   // by word of somebody on this host
	refused string // why the edge or the controller does not take it
	barred  bool   // it is the edge that does not, or who serves may not
	// hidden: the edge cannot ask the kernel whether its program still listens.
	hidden  bool
	carries bool              // its sockets are an agent's of boost
	user    string            // whose its sockets are
	check   string            // why its ready checks fail, where none passes
	queue   serving.Group     // of accepted connections
	stuck   serving.Verdict   // why its program does not accept
	turned  time.Time         // when its accept queue last took it out, or back
	weighed time.Time         // when how many listeners work was last told
	checks  map[uint16]*check // that run, for the host and its guests
	spec    string            // of them
	fitness host.Judgement    // what the edge has
	waiting uint32            // connections in the accept queue
	backlog uint32
	flows   uint32
}

// A verdict is what is reported of an instance.
type verdict struct {
	reason string // why it is not ready; "" when it is
	queue  bool   // only its accept queue speaks against it
	slow   bool   // and its program runs; or where some listeners work, that of the others
	resume bool   // its program can go on with flows that began elsewhere
	// working of the listeners accept; both are 0 where all do, or none.
	working, listeners int
}

// queueAlone reports whether nothing speaks against it, or its accept queue does.
func (v verdict) queueAlone() bool { return v.reason == "" || v.queue }

// text is the verdict for people; "" where all is well.
func (v verdict) text() string {
	if v.listeners > 0 {
		return fmt.Sprintf("%d of %d listeners work", v.working, v.listeners)
	}
	return v.reason
}

// weight reports whether others listeners work than told, of an instance that is ready before and after.
func (v verdict) weight(told verdict) bool {
	return v.reason == "" && told.reason == "" && (v.working != told.working || v.listeners != told.listeners || v.slow != told.slow)
}

// verdict judges an instance of a service whose policy is known or not.
func (i *instance) verdict(known bool) verdict {
	switch {
	case i.refused != "":
		return verdict{reason: i.refused}
	case i.drained:
		return verdict{reason: "draining"}
	case !known && !i.trusted:
		return verdict{reason: "asking for its policy"}
	case i.check != "":
		return verdict{reason: i.check}
	}
	return verdict{reason: i.stuck.Reason, queue: i.stuck.Reason != "", slow: i.stuck.Slow, working: i.stuck.Working, listeners: i.stuck.Listeners}
}

// reconsider keeps the edge's refusal; the controller may have changed its mind.
func (i *instance) reconsider() {
	if !i.barred {
		i.refused = ""
	}
}
