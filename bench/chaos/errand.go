package chaos

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"scaffold.dev/scaffold/bench/agent"
)

// An outcome is how one run of an errand went.
type outcome struct {
	errand       *errand
	node         string
	began, ended int64
	err          error // nil: it ended well, and what it printed is right
	wrong        bool  // no event excuses it
	early        bool  // it could not begin
}

// errandsRun are the errands of a stage, and what came of them since somebody looked last.
type errandsRun struct {
	stop func()
	work sync.WaitGroup

	mu   sync.Mutex
	done []outcome
	dir  string
}

// send starts the servers of all errands, and clients that go on until they are stopped.
func (s *stage) send(ctx context.Context) (names []string, err error) {
	e := &s.errands
	if e.dir, err = os.MkdirTemp("", "scaffold-chaos-"); err != nil {
		return nil, err
	}
	if err := os.Chmod(e.dir, 0o755); err != nil {
		return nil, err
	}
	ctx, e.stop = context.WithCancel(ctx)
	for _, one := range errands() {
		target, sum, err := s.host(ctx, &one)
		if err != nil {
			return names, fmt.Errorf("serve %s: %w", one.name, err)
		}
		names = append(names, one.name)
		clients := s.world.Clients()
		if one.alone {
			clients = clients[:1]
		}
		for _, c := range clients {
			e.work.Go(func() { s.again(ctx, &one, c, target, sum) })
		}
	}
	return names, nil
}

// host starts the servers of an errand and waits until they are in service.
func (s *stage) host(ctx context.Context, one *errand) (target string, sum [sha256.Size]byte, err error) {
	if target, err = s.rig.TargetPort(ctx, one.service, one.port); err != nil {
		return target, sum, err
	}
	for _, node := range one.servers {
		dir := filepath.Join(s.errands.dir, one.service+"-"+node)
		if err := os.Mkdir(dir, 0o755); err != nil {
			return target, sum, err
		}
		if one.prepare != nil {
			if sum, err = one.prepare(dir, target); err != nil {
				return target, sum, err
			}
		}
		cmd := program(one.serve(target, dir))
		if err := s.rig.Start(node, cmd); err != nil {
			return target, sum, err
		}
		go cmd.Wait() //nolint:errcheck // ends with the lab
	}
	return target, sum, s.rig.AwaitServing(ctx, one.service, len(one.servers))
}

// program is a command that is found where daemons are, too.
func program(argv []string) *exec.Cmd {
	if path := filepath.Join("/usr/sbin", argv[0]); !installedInPath(argv[0]) {
		argv = append([]string{path}, argv[1:]...)
	}
	return exec.Command(argv[0], argv[1:]...)
}

// between is how long a client rests.
const between = 100 * time.Millisecond

func (s *stage) again(ctx context.Context, one *errand, node, target string, sum [sha256.Size]byte) {
	for n := 0; ctx.Err() == nil; n++ {
		o := s.once(ctx, one, node, target, fmt.Sprintf("%s-%d", node, n), sum)
		if ctx.Err() == nil {
			s.errands.mu.Lock()
			s.errands.done = append(s.errands.done, o)
			s.errands.mu.Unlock()
		}
		select {
		case <-ctx.Done():
		case <-time.After(between):
		}
	}
}

func (s *stage) once(ctx context.Context, one *errand, node, target, id string, sum [sha256.Size]byte) outcome {
	o := outcome{errand: one, node: node, began: agent.Now()}
	var out, complaints bytes.Buffer
	cmd := program(one.run(target, id))
	cmd.Stdout, cmd.Stderr = &out, &complaints
	o.err = s.rig.Start(node, cmd)
	if o.err == nil {
		stop := context.AfterFunc(ctx, func() { cmd.Process.Kill() })
		o.err = cmd.Wait()
		stop()
	}
	o.ended = agent.Now()
	all := append(bytes.Clone(complaints.Bytes()), out.Bytes()[:min(200, out.Len())]...)
	switch {
	case o.err == nil:
		o.err = one.check(out.Bytes(), sum)
		o.wrong = o.err != nil
	case one.truncated != nil && one.truncated(o.err):
		o.wrong = true
	default:
		o.early = one.retry(o.err, append(all, out.Bytes()...))
	}
	if o.err != nil {
		o.err = fmt.Errorf("%w: %s", o.err, bytes.TrimSpace(all))
	}
	return o
}

// returned judges the errands that came back since it was asked last.
func (s *stage) returned(done []Happening, count *tally) (odd []Odd) {
	s.errands.mu.Lock()
	all := s.errands.done
	s.errands.done = nil
	s.errands.mu.Unlock()
	for _, o := range all {
		switch {
		case o.err == nil:
			count.errands++
		case o.excused(done):
			count.errandsFailed++
		default:
			odd = append(odd, Odd{At: o.ended, What: fmt.Sprintf("%s on %s, begun %.1f s before: %v", o.errand.name, o.node, float64(o.ended-o.began)/1e9, o.err)})
		}
	}
	return odd
}

// excused reports whether an event explains it: that it could not begin any, that it broke only what ends the
// connections of one of several servers.
func (o *outcome) excused(done []Happening) bool {
	return !o.wrong && slices.ContainsFunc(done, func(h Happening) bool {
		during := h.Began <= o.ended && o.began <= h.excuses()
		hit := len(o.errand.servers) > 1 && slices.Contains(o.errand.servers, h.Resets()) && h.Verb() != "crash" && h.Verb() != "shed"
		return during && (o.early || hit)
	})
}

// recall ends all errands.
func (s *stage) recall() error {
	s.errands.stop()
	s.errands.work.Wait()
	return os.RemoveAll(s.errands.dir)
}
