package loop

import (
	"context"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"weak"
)

// A session is what a loop's function refers to, large enough to have memory of its own.
type session struct {
	_    [4096]byte
	runs *atomic.Int32
}

// begin has a session do something each hour; only the loop refers to it then.
func begin(ctx context.Context, l *Loop) (weak.Pointer[session], *atomic.Int32) {
	s := &session{runs: new(atomic.Int32)}
	var again func()
	again = func() {
		l.During(ctx, time.Hour, func() {
			s.runs.Add(1)
			again()
		})
	}
	l.Post(again)
	return weak.Make(s), s.runs
}

func TestWhatWaitsDuringASessionIsLetGoAtItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New()
		go l.Run(t.Context(), func() {})
		ctx, end := context.WithCancel(t.Context())
		held, runs := begin(ctx, l)
		time.Sleep(90 * time.Minute) // of the test's clock
		synctest.Wait()
		if runs.Load() != 1 || held.Value() == nil {
			t.Errorf("ran %d times in one and a half hours, want once, and once more to come", runs.Load())
		}
		end()
		synctest.Wait()
		runtime.GC()
		if left := held.Value(); left != nil {
			t.Error("the session has ended, and what was to run in it half an hour later still holds it")
		}
	})
}

func TestWhatWaitsDuringASessionDoesNotRunAfterIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New()
		go l.Run(t.Context(), func() {})
		ctx, end := context.WithCancel(t.Context())
		l.Post(func() { l.During(ctx, time.Hour, func() { t.Error("it ran after the session") }) })
		synctest.Wait()
		end()
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		l.Post(func() { l.During(ctx, time.Hour, func() { t.Error("it ran in a session that had ended before") }) })
		time.Sleep(2 * time.Hour)
	})
}

// A caller who has given up has what he asked for back: it does not run later.
func TestWhatIsAskedInVainDoesNotRunLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New()
		ctx, end := context.WithTimeout(t.Context(), time.Second)
		defer end()
		ran := false
		if err := l.Ask(ctx, func() { ran = true }); err == nil || ran {
			t.Errorf("nobody runs the loop: %v, ran %v", err, ran)
		}
		running, stop := context.WithCancel(t.Context())
		go l.Run(running, func() {})
		synctest.Wait()
		if ran {
			t.Error("it ran after its caller had given up")
		}
		// What runs already is waited for, and was not in vain.
		began, finish := make(chan struct{}), make(chan struct{})
		hurried, hurry := context.WithCancel(t.Context())
		said := make(chan error, 1)
		go func() {
			said <- l.Ask(hurried, func() { close(began); <-finish; ran = true })
		}()
		<-began
		hurry()
		synctest.Wait()
		close(finish)
		if err := <-said; err != nil || !ran {
			t.Errorf("%v, ran %v; want it to have run", err, ran)
		}
		stop()
		synctest.Wait()
		if err := l.Ask(t.Context(), func() { t.Error("ran in a loop that has ended") }); err != ErrStopping {
			t.Errorf("after the end: %v, want ErrStopping", err)
		}
	})
}
