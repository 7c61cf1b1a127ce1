package timeline

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"
	"time"

	"scaffold.dev/scaffold/internal/lab/file"
)

// A SeriesResult is a series as it was read: pairs of the second of the run and the value.
type SeriesResult struct {
	Name   string       `json:"name"`
	Panel  string       `json:"panel,omitempty"`
	Points [][2]float64 `json:"points"`
	Error  string       `json:"error,omitempty"`
}

// add keeps three digits, which is more than clocks and plots have.
func (r *SeriesResult) add(at, value float64) {
	r.Points = append(r.Points, [2]float64{round(at), round(value)})
}

func round(x float64) float64 { return math.Round(x*1000) / 1000 }

// watch reads all series until ctx ends.
func (r *runner) watch(ctx context.Context) {
	for _, s := range r.file.Series {
		res := &SeriesResult{Name: s.Name, Panel: s.Panel, Points: [][2]float64{}}
		r.series = append(r.series, res)
		r.watching.Go(func() {
			if err := r.read(ctx, s, res); err != nil && ctx.Err() == nil {
				res.Error = err.Error()
				r.logf("series %s: %v", s.Name, err)
			}
		})
	}
}

// watched waits for the readers, which have been told to end.
func (r *runner) watched() {
	r.watching.Wait()
	for _, s := range r.series {
		r.result.Series = append(r.result.Series, *s)
	}
	r.result.Took = round(r.since())
}

func (r *runner) read(ctx context.Context, s *file.Series, res *SeriesResult) error {
	switch {
	case s.Argv != nil:
		return r.readCommand(ctx, s, res)
	case s.Connections > 0:
		return r.net.In(s.Node, func() error {
			return r.tick(ctx, s, func(at float64) error {
				count, err := connections(s.Connections)
				res.add(at, float64(count))
				return err
			})
		})
	}
	return r.readBytes(ctx, s, res)
}

// tick calls f at regular times.
func (r *runner) tick(ctx context.Context, s *file.Series, f func(at float64) error) error {
	t := time.NewTicker(s.Every)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
			if err := f(r.since()); err != nil {
				return err
			}
		}
	}
}

// readBytes reads how much passes between a node and a neighbour. A link that is not there carries nothing.
func (r *runner) readBytes(ctx context.Context, s *file.Series, res *SeriesResult) error {
	c := r.net.Counter(s.Node, s.Received+s.Sent)
	defer c.Close()
	last := growth{}
	return r.tick(ctx, s, func(at float64) error {
		bytes, sent, err := c.Bytes()
		if err != nil {
			return err
		}
		if s.Sent != "" {
			bytes = sent
		}
		if rate, ok := last.per(at, float64(bytes)); ok {
			res.add(at, rate*8/1e6)
		}
		return nil
	})
}

// growth turns a count into its growth per second.
type growth struct {
	at, count float64
	known     bool
}

// per is by how much the count grew a second since the last call; a count that fell began anew.
func (g *growth) per(at, count float64) (rate float64, ok bool) {
	before := *g
	*g = growth{at, count, true}
	if !before.known || at <= before.at {
		return 0, false
	}
	return max(0, count-before.count) / (at - before.at), true
}

// established is the state of a TCP connection in /proc/net/tcp6.
const established = "01"

// connections counts those of a local port in the namespace of this thread.
func connections(port int) (count int, err error) {
	text, err := os.ReadFile("/proc/thread-self/net/tcp6")
	end := fmt.Sprintf(":%04X", port)
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) > 3 && f[3] == established && strings.HasSuffix(f[1], end) {
			count++
		}
	}
	return count, err
}

// readCommand reads what a command prints, as it prints it.
func (r *runner) readCommand(ctx context.Context, s *file.Series, res *SeriesResult) error {
	cmd, err := r.net.Begin(ctx, s.Node, s.Argv)
	if err != nil {
		return err
	}
	defer cmd.End() // how it ends does not matter: its numbers are there
	return readLines(cmd.Out, r.since, s.Rate, res)
}

// readLines reads numbers, each when it comes; since says when that is.
func readLines(out io.Reader, since func() float64, rate bool, res *SeriesResult) error {
	last := growth{}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		at := since()
		value, err := strconv.ParseFloat(strings.TrimSpace(lines.Text()), 64)
		if err != nil || math.IsInf(value, 0) || math.IsNaN(value) {
			return fmt.Errorf("expected a number, found %.80q", lines.Text())
		}
		if !rate {
			res.add(at, value)
		} else if grown, ok := last.per(at, value); ok {
			res.add(at, grown)
		}
	}
	return lines.Err()
}
