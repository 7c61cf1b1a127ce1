package boost

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"scaffold.dev/scaffold/bench/process"
	"scaffold.dev/scaffold/bench/sos"
)

var sosCores = SosExperiment{
	About: sos.Result{
		Name: "sos_cores", Title: "Agents on one processor and on all", Thesis: "tables 3.1.1 and 3.1.2",
		Setting: "One and two streams of iperf3 over agents that are cabled to each other: an emulated path would take the processors that are to be measured. Each agent on one processor of its own, then both on all. Beside these the thesis' agents of before, which had one thread, and its new ones.",
		Lacks:   "The thesis' agents had 20 cores each, and its two clients machines of their own. Here two processors have two agents, client, server and what the kernel does for all of them: one agent on one processor is about all that there is, so neither the second client nor all processors can add what they add there. Look at what is carried for each percent of a processor.",
	},
	Lab: sosPath("[c1, x]", "[x, y]"),
	run: (*sosRun).cores,
}

// sosCoresThesis are the thesis' rates of one and two clients, in Gbit/s, and what the sending and the receiving agent take of
// a processor, in percent: with one core, and with all.
var sosCoresThesis = [2][2][3]float64{{{10.96, 100, 100}, {17.00, 199, 200}}, {{12.82, 315, 333}, {17.10, 390, 401}}}

// cores measures one stream and two, each on one processor and on all.
func (r *sosRun) cores(ctx context.Context) error {
	return r.boosted(ctx, func(b *rig) error {
		for i, places := range []struct {
			name string
			cpus func(agent int) []int
		}{
			{"an agent on one processor", func(agent int) []int { return []int{agent % runtime.NumCPU()} }},
			{"agents on all processors", func(int) []int { return all(runtime.NumCPU()) }},
		} {
			for agent, name := range []string{"x", "y"} {
				if err := stayOn(b.agents.Keeper(name), places.cpus(agent)); err != nil {
					return err
				}
			}
			for n := 1; n <= 2; n++ {
				m, err := b.metered(ctx, fmt.Sprintf("%s, %d", places.name, n), b.streams(n))
				if err != nil {
					return err
				}
				of, thesis := []string{"one stream, ", "two streams, "}[n-1]+places.name, sosCoresThesis[i][n-1]
				r.put(of, "goodput", "Gbit/s", thesis[0], each(m.rate, gigabits)...)
				r.put(of, "sending agent", "%", thesis[1], m.near...)
				r.put(of, "receiving agent", "%", thesis[2], m.far...)
			}
		}
		return nil
	})
}

// all are the numbers of so many processors.
func all(n int) (cpus []int) {
	for i := range n {
		cpus = append(cpus, i)
	}
	return cpus
}

// metered runs are rates, and what both agents took of a processor meanwhile, in percent.
type metered struct{ rate, near, far []outcome }

// metered has a contender run as often as there are runs.
func (b *rig) metered(ctx context.Context, when string, c *contender) (m metered, err error) {
	for range b.runs() {
		var before, after [2]time.Duration
		began := time.Now()
		for i, name := range []string{"x", "y"} {
			before[i] = process.TreeCPU(b.agents.Keeper(name))
		}
		if err := b.once(ctx, when, c); err != nil {
			return m, err
		}
		took := time.Since(began)
		for i, name := range []string{"x", "y"} {
			after[i] = process.TreeCPU(b.agents.Keeper(name))
		}
		blame := c.all[len(c.all)-1].blame
		m.near = append(m.near, outcome{percent(after[0]-before[0], took), blame})
		m.far = append(m.far, outcome{percent(after[1]-before[1], took), blame})
	}
	m.rate = c.all
	return m, nil
}

// percent is what some time of processors is of the time that went by.
func percent(used, took time.Duration) float64 { return 100 * float64(used) / float64(took) }

// stayOn keeps all threads of a process, and of all that it has started, on some processors; those that they start stay there,
// too.
func stayOn(pid int, cpus []int) error {
	var set unix.CPUSet
	for _, cpu := range cpus {
		set.Set(cpu)
	}
	threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return err
	}
	for _, t := range threads {
		tid, err := strconv.Atoi(t.Name())
		if err == nil {
			err = unix.SchedSetaffinity(tid, &set)
		}
		if err != nil && !errors.Is(err, unix.ESRCH) { // it has ended
			return fmt.Errorf("keep thread %s on %v: %w", t.Name(), cpus, err)
		}
	}
	for _, child := range process.Children(pid) {
		if err := stayOn(child, cpus); err != nil {
			return err
		}
	}
	return nil
}
