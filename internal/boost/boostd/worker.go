package boostd

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"os"

	"scaffold.dev/scaffold/internal/boost/keeper"
	"scaffold.dev/scaffold/internal/bpf/features"
)

// An agent is two processes. The keeper is the one that was started; it holds the connections to end hosts, and the memory
// that has their bytes. Its worker does all the work, and where it dies the next one goes on with them
// (internal/boost/keeper, internal/boost/agent).

// Keys of what is held beside the agent's own.
const (
	incarnationKey = "incarnation" // of the worker that began last
	settingsKey    = "settings"    // the file as it was when the agent began: a worker that begins later does the same
	toldKey        = "told"        // what controllers have said last
	doorKey        = "door"        // the listening socket: other agents who connect while no worker is there wait for the next one
	bootKey        = "boot"        // number of this start of the agent, which its workers share
)

// IsWorker reports whether this process is an agent's worker, which Work is for.
func IsWorker() bool { return keeper.IsWorker() }

// A Manager is who has started an agent.
type Manager struct {
	Ready   func()          // is called once the agent takes connections
	Replace <-chan struct{} // has its worker replaced by one of the program that has this one's name by then; nil: nobody does
}

// Run is an agent until ctx ends.
func Run(ctx context.Context, s Settings, log *slog.Logger, by Manager) error {
	// Here, although the worker looks, too: a *features.MissingError does not get better by another try, and who has started this
	// process learns that by its exit code. What a worker says of itself is words.
	if err := features.Missing("an agent of boost", features.Diverting(), func(features.Feature) bool { return true }); err != nil {
		return err
	}
	program, err := os.Executable() // now: the name may be another file's later
	if err != nil {
		return err
	}
	settings, err := keeper.Text(append([]byte(s.path+"\x00"+s.BPFFS+"\x00"), s.text...))
	if err != nil {
		return err
	}
	boot, err := keeper.Text([]byte(rand.Text()))
	if err != nil {
		return errors.Join(err, keeper.CloseText(settings))
	}
	return keeper.Run(ctx, keeper.Config{Log: log, Ready: by.Ready, Replace: by.Replace, Program: program, Given: []keeper.Found{
		{Key: settingsKey, FDs: []int{settings}}, {Key: bootKey, FDs: []int{boot}},
	}})
}

// Work is an agent's worker until its keeper has it end, or is gone, or ctx ends.
func Work(ctx context.Context, log *slog.Logger) error {
	keep, err := keeper.Join(ctx)
	if err != nil {
		return err
	}
	defer keep.Close()
	s, err := foundSettings(keep)
	if err == nil {
		err = s.run(keep.Context(), keep, log)
	}
	if err != nil {
		keep.Failed(err) // it says so
		return nil
	}
	if cause := context.Cause(keep.Context()); errors.Is(cause, keeper.ErrGone) {
		return cause
	}
	return nil
}

func foundSettings(keep *keeper.Store) (Settings, error) {
	parts := bytes.SplitN(foundText(keep, settingsKey), []byte{0}, 3)
	if len(parts) != 3 {
		return Settings{}, errors.New("the agent's keeper has no settings")
	}
	s, err := Parse(string(parts[0]), parts[2])
	s.BPFFS = string(parts[1])
	return s, err
}

// A store is what of its keeper a worker needs for what it leaves to the next one.
type store interface {
	Found() []keeper.Found
	Hold(key string, value []byte, fds ...int) error
}

// holdText has the keeper hold a text of whatever length.
func holdText(keep store, key string, text []byte) error {
	fd, err := keeper.Text(text)
	if err != nil {
		return err
	}
	return errors.Join(keep.Hold(key, nil, fd), keeper.CloseText(fd))
}

// foundText is a text that was held; nil: there is none.
func foundText(keep store, key string) []byte {
	for _, f := range keep.Found() {
		if f.Key == key && len(f.FDs) == 1 {
			if text, err := keeper.ReadText(f.FDs[0]); err == nil {
				return text
			}
		}
	}
	return nil
}
