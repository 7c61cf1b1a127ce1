package bench

import (
	"fmt"
	"time"

	"scaffold.dev/scaffold/internal/lab/file"
)

// A Line is what the emulated links of a lab are to do instead of what its file says.
type Line struct {
	Delay time.Duration // each way
	Loss  float64       // percent, each way
}

// Apply changes the file. A line that does nothing becomes a plain pair of interfaces.
func (p Line) Apply(f *file.File) error {
	if p.Delay < 0 || p.Delay > time.Minute || p.Loss < 0 || p.Loss > 100 {
		return fmt.Errorf("a path with a delay of %v and a loss of %g %%: want up to 1m and 0 to 100", p.Delay, p.Loss)
	}
	for _, l := range f.Links {
		switch {
		case l.Emulated == nil:
		case p == Line{}:
			l.Emulated = nil
		default:
			for i := range l.Emulated {
				l.Emulated[i].Delay, l.Emulated[i].Loss = p.Delay, p.Loss/100
			}
		}
	}
	return nil
}
