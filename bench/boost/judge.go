package boost

import (
	"context"
	"fmt"

	"scaffold.dev/scaffold/bench"
	"scaffold.dev/scaffold/internal/lab"
)

// An outcome is what one run measured, and what the lab's certificate says of the emulator meanwhile.
type outcome struct {
	value float64
	blame string // in which the emulator did not do what was asked of it; "": it did
}

// paired puts outcomes of the same turns together. A pair is blamed on the emulator where either run is, and one whose peer
// measured nothing is left out.
func paired(ours, peers []outcome, of func(ours, peer float64) float64) (all []outcome) {
	for i := range min(len(ours), len(peers)) {
		if peers[i].value > 0 {
			blame := ours[i].blame
			if blame == "" {
				blame = peers[i].blame
			}
			all = append(all, outcome{of(ours[i].value, peers[i].value), blame})
		}
	}
	return all
}

func quotient(a, b float64) float64   { return a / b }
func difference(a, b float64) float64 { return a - b }

// each is what every outcome becomes.
func each(all []outcome, of func(float64) float64) (out []outcome) {
	for _, o := range all {
		out = append(out, outcome{of(o.value), o.blame})
	}
	return out
}

// values are those of all outcomes.
func values(all []outcome) (out []float64) {
	for _, o := range all {
		out = append(out, o.value)
	}
	return out
}

// judged is a row of the runs in which the emulator did what was asked of it. Where there is none, it is of all of them,
// marked, and nobody judges it.
func judged(name, unit, aim, peer string, all []outcome) bench.Row {
	return judgedAt(name, unit, aim, peer, all, 0.5)
}

// judgedAt is judged with a quantile other than the median.
func judgedAt(name, unit, aim, peer string, all []outcome, q float64) bench.Row {
	var clean []float64
	blame := ""
	for _, o := range all {
		if o.blame == "" {
			clean = append(clean, o.value)
		} else if blame == "" {
			blame = o.blame
		}
	}
	if len(clean) > 0 || len(all) == 0 {
		return bench.QuantileRow(name, unit, aim, peer, clean, q)
	}
	r := bench.QuantileRow(name, unit, aim, peer, values(all), q)
	r.Met, r.Marked = true, blame
	return r
}

// observed runs f, and asks the lab whether its emulator did what was asked of it meanwhile. A lab that emulates nothing has
// nobody to blame.
func observed(ctx context.Context, l *lab.Lab, f func() (float64, error)) (o outcome, err error) {
	if l.Engine().Client() == nil {
		o.value, err = f()
		return o, err
	}
	if _, err = l.Engine().CertificateAnew(ctx); err != nil {
		return o, err
	}
	if o.value, err = f(); err != nil {
		return o, err
	}
	c, err := l.Engine().Certificate(ctx)
	if err == nil && !c.Faithful {
		o.blame = c.Reasons[0] // the others follow from the same
	}
	return o, err
}

// A contender is one way to carry bytes, with what its runs measured.
type contender struct {
	name string
	run  func(context.Context) (float64, error)
	all  []outcome
}

// turns has each contender run in its turn, as often as there are runs; the order is another one each time.
func (b *rig) turns(ctx context.Context, when string, all ...*contender) error {
	for i := range b.runs() {
		for j := range all {
			c := all[turn(i, j, len(all))]
			if err := b.once(ctx, when, c); err != nil {
				return err
			}
		}
	}
	return nil
}

// turn is whose turn it is: everybody's once in each round, forward and back.
func turn(round, place, of int) int {
	if round%2 == 1 {
		return of - 1 - place
	}
	return place
}

// once has a contender run. Where the emulator is to blame, a note says so.
func (b *rig) once(ctx context.Context, when string, c *contender) error {
	o, err := observed(ctx, b.lab, func() (float64, error) { return c.run(ctx) })
	if err != nil {
		return fmt.Errorf("%s, %s: %w", when, c.name, err)
	}
	c.all = append(c.all, o)
	if o.blame != "" {
		b.note("%s, %s, run %d is not judged: the emulator: %s", when, c.name, len(c.all), o.blame)
	}
	return nil
}
