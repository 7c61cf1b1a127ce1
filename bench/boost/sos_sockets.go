package boost

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os/exec"
	"time"

	"scaffold.dev/scaffold/bench"
	"scaffold.dev/scaffold/bench/process"
	"scaffold.dev/scaffold/bench/sos"
)

var sosSockets = SosExperiment{
	About: sos.Result{
		Name: "sos_sockets", Title: "One thread for all sockets, or one for each", Thesis: "tables 3.2.2 and 3.2.3, figures 3.2.2 to 3.2.4",
		Setting: "1 to 20 connections of CUBIC over a path of 500 Mbit/s and 50 ms that loses one packet in a thousand: from a program to another, each with one thread that waits for all of its sockets (epoll, as agents do), and each with a thread for each socket that blocks; and one stream over agents with as many connections between them (`control: cubic`).",
		Lacks:   "The thesis' threads had 20 cores to spread over and took them: its receiver's load is of threads that wait. A thread that blocks in Linux takes nothing, and a path of 500 Mbit/s asks for a few percent of a processor, so the difference in load that the thesis has is not to be expected; that the rate grows with the connections and is the same in both ways is.",
	},
	Lab: sosPath("[c1, x]", sosLongPath),
	run: (*sosRun).sockets,
}

// A sosSocket is a row of the thesis: the rate in Gbit/s, and what sender and receiver take of a processor, in percent.
type sosSocket [3]float64

// sosSocketsThesis are the thesis' rows by the number of connections: one thread for all, and one for each.
var sosSocketsThesis = []struct {
	connections int
	loop, each  sosSocket
}{
	{1, sosSocket{0.584, 219, 176}, sosSocket{0.541, 130, 132}},
	{2, sosSocket{0.99, 244, 280}, sosSocket{0.99, 257, 253}},
	{4, sosSocket{3.0, 287, 301}, sosSocket{2.9, 310, 440}},
	{8, sosSocket{7.18, 315, 330}, sosSocket{7.53, 387, 853}},
	{12, sosSocket{9.2, 334, 339}, sosSocket{9.3, 447, 1233}},
	{16, sosSocket{14.13, 350, 377}, sosSocket{13.9, 537, 1681}},
	{20, sosSocket{16.01, 399, 434}, sosSocket{15.92, 599, 1997}},
}

// sockets measures both ways and agents, with each number of connections.
func (r *sosRun) sockets(ctx context.Context) error {
	rows := sosSocketsThesis
	if r.opt.Quick {
		rows = rows[:2]
	}
	return r.boosted(ctx, func(b *rig) error {
		if err := b.loss(ctx, lossOfMost); err != nil {
			return err
		}
		for _, row := range rows {
			of := fmt.Sprint(row.connections)
			for _, way := range []struct {
				name    string
				threads bool
				thesis  sosSocket
			}{{"one thread", false, row.loop}, {"thread each", true, row.each}} {
				m, err := b.pouring(ctx, row.connections, way.threads)
				if err != nil {
					return fmt.Errorf("%s, %s: %w", of, way.name, err)
				}
				r.put(of, way.name, "Gbit/s", way.thesis[0], each(m.rate, gigabits)...)
				r.put(of, way.name+", sender", "%", way.thesis[1], m.near...)
				r.put(of, way.name+", receiver", "%", way.thesis[2], m.far...)
			}
			if err := r.agentsWith(ctx, b, of, row.connections); err != nil {
				return err
			}
		}
		return nil
	})
}

// agentsWith measures one stream over agents with so many connections.
func (r *sosRun) agentsWith(ctx context.Context, b *rig, of string, connections int) error {
	if err := b.agents.RestartWith(ctx, fmt.Sprintf("control: cubic\nconnections: %d\n", connections)); err != nil {
		return err
	}
	m, err := b.metered(ctx, of+" connections", b.boosted())
	if err != nil {
		return err
	}
	r.put(of, "agents", "Gbit/s", 0, each(m.rate, gigabits)...)
	r.put(of, "agents, sender", "%", 0, m.near...)
	r.put(of, "agents, receiver", "%", 0, m.far...)
	return nil
}

// pouring measures a program that writes to so many connections, and one that reads them.
func (b *rig) pouring(ctx context.Context, connections int, threads bool) (m metered, err error) {
	drain, ask, answers, err := b.drain(threads)
	if err != nil {
		return m, err
	}
	defer ends(drain)
	pour, err := bench.AgentCommand("pour", "--to", b.server(ownPlain).String(), "--connections", fmt.Sprint(connections), fmt.Sprint("--threads=", threads))
	if err == nil {
		err = b.lab.Start("c1", pour)
	}
	if err != nil {
		return m, err
	}
	defer ends(pour)
	if err := bench.Pause(ctx, settle); err != nil {
		return m, err
	}
	read := func() (bytes float64, err error) {
		if _, err = fmt.Fprintln(ask); err == nil {
			_, err = fmt.Fscanln(answers, &bytes)
		}
		return bytes, err
	}
	for range b.runs() {
		var near, far float64
		o, err := observed(ctx, b.lab, func() (float64, error) {
			before, err := read()
			if err != nil {
				return 0, err
			}
			began, sent, got := time.Now(), process.TreeCPU(pour.Process.Pid), process.TreeCPU(drain.Process.Pid)
			if err := bench.Pause(ctx, b.opt.Each); err != nil {
				return 0, err
			}
			after, err := read()
			took := time.Since(began)
			near, far = percent(process.TreeCPU(pour.Process.Pid)-sent, took), percent(process.TreeCPU(drain.Process.Pid)-got, took)
			return (after - before) * 8 / took.Seconds(), err
		})
		if err != nil {
			return m, err
		}
		m.rate, m.near, m.far = append(m.rate, o), append(m.near, outcome{near, o.blame}), append(m.far, outcome{far, o.blame})
	}
	return m, nil
}

// drain starts the program that reads.
func (b *rig) drain(threads bool) (cmd *exec.Cmd, ask io.Writer, answers *bufio.Reader, err error) {
	if cmd, err = bench.AgentCommand("drain", "--listen", b.server(ownPlain).String(), fmt.Sprint("--threads=", threads)); err != nil {
		return nil, nil, nil, err
	}
	if ask, err = cmd.StdinPipe(); err != nil {
		return nil, nil, nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, nil, nil, err
	}
	if err := b.lab.Start("s1", cmd); err != nil {
		return nil, nil, nil, err
	}
	answers = bufio.NewReader(out)
	if line, err := answers.ReadString('\n'); err != nil {
		ends(cmd)
		return nil, nil, nil, fmt.Errorf("the program that reads said %q: %w", line, err)
	}
	return cmd, ask, answers, nil
}

// ends ends a program.
func ends(cmd *exec.Cmd) {
	cmd.Process.Kill()
	cmd.Wait() //nolint:errcheck // killed
}
