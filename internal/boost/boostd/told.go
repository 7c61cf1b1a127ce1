package boostd

import (
	"log/slog"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"scaffold.dev/scaffold/internal/api"
	"scaffold.dev/scaffold/internal/api/member"
	"scaffold.dev/scaffold/internal/boost/agent"
	"scaffold.dev/scaffold/internal/boost/ends"
	"scaffold.dev/scaffold/internal/boost/joining"
	"scaffold.dev/scaffold/internal/boost/keeper"
	"scaffold.dev/scaffold/internal/boost/legs"
	"scaffold.dev/scaffold/internal/linux/cgroups"
	"scaffold.dev/scaffold/internal/operate/obs"
	"scaffold.dev/scaffold/internal/trust"
)

// told is an agent as a controller tells it what to do.
type told struct {
	*agent.Agent
	others *ring
	meter  *meter
	kernel *ends.Ends
}

// Tell replaces which agents there are and which lanes. Keys come first: whoever is called is to be known.
func (t *told) Tell(peers []joining.Peer, lanes []agent.Lane) error {
	before := t.others.now()
	var names []agent.Peer
	for _, p := range peers {
		names = append(names, p.Peer)
	}
	t.others.set(peers)
	if err := t.Agent.Tell(names, lanes); err != nil {
		t.others.set(before)
		return err
	}
	return nil
}

// Stops are the versions of IP of which the machine forwards nothing.
func (t *told) Stops() []uint32 { return t.kernel.Stops() }

// Load is the share of the processors that this process may have that it has had since the last call.
func (t *told) Load() float64 { return t.meter.read() }

// joining is how the agent joins its network; announce is told the key of each stream.
func (s *Settings) joining(own *shown, t *told, rewritten *legs.Legs, announce func([]byte), keep *keeper.Store, log *slog.Logger) joining.Config {
	return joining.Config{
		Name: s.Name, Doors: s.Addresses(), Keys: own, KeyFor: s.KeyFor, BootID: string(foundText(keep, bootKey)), Version: obs.Version(),
		Controllers: api.NewControllers(s.Controllers), Credentials: &member.Credentials{Directory: trust.Directory(s.Credentials)},
		Agent: t, Legs: rewritten, Announce: announce, Log: log, Told: foundText(keep, toldKey),
		Remember: func(told []byte) {
			if err := holdText(keep, toldKey, told); err != nil {
				log.Warn("a worker after this one will not know what controllers have said, until they say it again", "why", err)
			}
		},
	}
}

// A meter reads how busy this process is.
type meter struct {
	mu   sync.Mutex
	at   time.Time
	used time.Duration
}

func newMeter() *meter { return &meter{at: time.Now(), used: processorTime()} }

func (m *meter) read() float64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	now, used := time.Now(), processorTime()
	may := min(float64(runtime.NumCPU()), cgroups.Quota())
	share := float64(used-m.used) / float64(max(now.Sub(m.at), time.Millisecond)) / may
	m.at, m.used = now, used
	return min(max(share, 0), 1)
}

// processorTime is what this process has had of processors so far.
func processorTime() time.Duration {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
