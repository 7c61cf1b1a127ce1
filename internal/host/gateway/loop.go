package gateway

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"scaffold.dev/scaffold/internal/operate/obs"
)

// watchSignals returns those that mean something to a gateway.
func watchSignals() <-chan os.Signal {
	c := make(chan os.Signal, 8)
	signal.Notify(c, unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGUSR2)
	return c
}

// loop runs until there is nothing left to do.
func (g *Gateway) loop(ctx context.Context, signals <-chan os.Signal) error {
	over := ctx.Done()
	for {
		select {
		case <-over:
			over = nil
			g.leave(true)
		case s := <-signals:
			if g.signal(s) {
				return g.finish("at once: a second signal")
			}
		case f := <-g.asks:
			f()
		case <-g.timer:
			if g.state == closed {
				return g.finish(fmt.Sprintf("%v after the listeners closed", g.cfg.Load().DrainLimit))
			}
			g.shutDoors()
		case <-g.empty:
			return g.finish("")
		}
	}
}

// signal says true where the gateway is to end at once.
func (g *Gateway) signal(s os.Signal) bool {
	switch s {
	case unix.SIGHUP:
		if err := g.reload(); err != nil {
			g.log.Error("reload: nothing has changed", "error", err)
		}
	case unix.SIGUSR2:
		if err := g.upgrade(); err != nil {
			g.log.Error("upgrade: nothing has changed", "error", err)
		}
	default:
		if g.exiting {
			return true
		}
		g.leave(true)
	}
	return false
}

// leave begins the way out: health says no from now on, listeners close after the drain wait.
func (g *Gateway) leave(exit bool) {
	g.exiting = g.exiting || exit
	if exit {
		obs.TellManager("STOPPING=1")
	}
	if g.state == closed { // drained before
		g.await()
		return
	}
	if g.state == leaving {
		return
	}
	g.state = leaving
	wait := g.cfg.Load().DrainWait
	g.health.Set("drain", fmt.Errorf("leaving: listeners close within %v", wait))
	g.timer = time.After(wait)
	g.log.Info("leaving", "listeners_close_in", wait, "flows", g.flowCount())
	g.report("gateway.drain", fmt.Sprintf("takes no new flows in %v", wait))
}

// shutDoors closes the listeners.
func (g *Gateway) shutDoors() {
	g.timer = nil
	g.state = closed
	g.health.Set("drain", fmt.Errorf("drained"))
	g.closeDoors(g.doors)
	g.log.Info("listeners are closed", "flows", g.room.count())
	g.await()
}

// closeDoors closes them at the same time: each lets handshakes come to their end.
func (g *Gateway) closeDoors(doors []*door) {
	var all sync.WaitGroup
	for _, d := range doors {
		all.Go(d.close)
	}
	all.Wait()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.former = slices.DeleteFunc(append(g.former, doors...), (*door).idle)
	g.doors = slices.DeleteFunc(slices.Clone(g.doors), func(d *door) bool { return slices.Contains(doors, d) })
}

// idle says that a door has no flows, and never will.
func (d *door) idle() bool { return d.closing.Load() && d.room.count() == 0 }

// await waits for the flows that are left, where the gateway is to end then.
func (g *Gateway) await() {
	if !g.exiting || g.empty != nil {
		return
	}
	done := make(chan struct{})
	go func() { // ends with the last flow, which finish sees to
		g.flows.Wait()
		close(done)
	}()
	g.empty = done
	g.timer = time.After(g.cfg.Load().DrainLimit)
}

// handedOver ends this gateway when its flows have ended: another has its listeners.
func (g *Gateway) handedOver() {
	g.state, g.exiting = closed, true
	g.log.Info("another gateway has taken over", "flows", g.room.count())
	g.await()
}

// finish ends all flows that are left.
func (g *Gateway) finish(why string) error {
	if why != "" {
		g.log.Warn("flows are cut off "+why, "flows", g.room.count())
		g.closeNow()
	}
	g.report("gateway.stop", "the gateway ends")
	return nil
}

// closeNow closes what is open; clients see resets.
func (g *Gateway) closeNow() {
	g.end()
	for _, d := range g.all() {
		if !d.closing.Load() {
			d.hand()
		}
		d.face.abort()
	}
	g.flows.Wait()
}

// undrain serves again.
func (g *Gateway) undrain() error {
	if g.exiting {
		return errEnding
	}
	if g.state == closed {
		doors, err := g.openAll(g.cfg.Load().listens, nil)
		if err != nil {
			return err
		}
		g.admit(doors)
	}
	if g.state != serving {
		g.report("gateway.undrain", "takes flows again")
	}
	g.state, g.timer = serving, nil
	g.health.Set("drain", nil)
	return nil
}

// upgrade starts this program anew, as it is on disk now; it takes over.
func (g *Gateway) upgrade() error {
	path, err := exec.LookPath(os.Args[0])
	if err != nil {
		return err
	}
	args := os.Args[1:]
	if !slices.Contains(args, "--takeover") {
		args = append(slices.Clone(args), "--takeover")
	}
	cmd := exec.Command(path, args...)
	cmd.Args[0] = os.Args[0]
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: false}
	if err := cmd.Start(); err != nil {
		return err
	}
	g.log.Info("upgrade: started", "pid", cmd.Process.Pid)
	go func() { // ends with the next gateway, or with this one
		if err := cmd.Wait(); err != nil {
			g.log.Error("upgrade: the new gateway has ended", "error", err)
		}
	}()
	return nil
}
