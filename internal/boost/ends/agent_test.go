package ends

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"time"
)

// agentEnv makes this binary an agent that copies both ways: what its tests start in a namespace of their own, and kill.
const agentEnv = "SCAFFOLD_TEST_AGENT"

// An agentConfig is what agentEnv holds.
type agentConfig struct {
	Config
	Lanes    []Lane
	Answer   string        // "": copy; "hold": decide about nothing; "pass", "drop", "refuse"
	Patience time.Duration // for a server to answer
}

// runAgent answers lines: lanes (JSON), stop and go (its heartbeat), counters, close.
func runAgent() int {
	var cfg agentConfig
	if err := json.Unmarshal([]byte(os.Getenv(agentEnv)), &cfg); err != nil {
		fmt.Println("failed:", err)
		return 1
	}
	e, err := Open(cfg.Config)
	if err != nil {
		fmt.Println("failed:", err)
		return 1
	}
	a := &agent{e: e, cfg: cfg, live: map[*net.TCPConn]bool{}}
	a.beating.Lock()
	if err := errors.Join(e.SetLanes(cfg.Lanes), e.Beat()); err != nil {
		fmt.Println("failed:", err)
		return 1
	}
	a.beating.Unlock()
	go a.beat()
	go a.serve()
	fmt.Println("ready")
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		if !a.do(in.Text()) {
			return 0
		}
	}
	return 0
}

type agent struct {
	e       *Ends
	cfg     agentConfig
	beating sync.Mutex // held: the heart stands still

	mu   sync.Mutex
	live map[*net.TCPConn]bool
}

func (a *agent) do(line string) bool {
	word, rest, _ := strings.Cut(line, " ")
	var err error
	switch word {
	case "lanes":
		var lanes []Lane
		if err = json.Unmarshal([]byte(rest), &lanes); err == nil {
			err = a.e.SetLanes(lanes)
		}
	case "stop":
		a.beating.Lock()
	case "go":
		a.beating.Unlock()
	case "counters":
		all, failed := a.e.Counters()
		b, _ := json.Marshal(all)
		fmt.Printf("counters %s\n", b)
		err = failed
	case "sessions":
		n, failed := a.e.kernel.Sessions()
		fmt.Println("sessions", n)
		err = failed
	case "sweep":
		err = errors.Join(a.e.kernel.Sweep(), a.e.kernel.Sweep())
	case "close":
		a.mu.Lock()
		for c := range a.live {
			reset(c)
		}
		a.mu.Unlock()
		a.beating.Lock() // for good
		fmt.Println("closed", a.e.Close())
		return false
	}
	fmt.Println("done", rest, err)
	return true
}

func (a *agent) beat() {
	for range time.Tick(20 * time.Millisecond) {
		a.beating.Lock()
		a.e.Beat()
		a.beating.Unlock()
	}
}

func (a *agent) serve() {
	for {
		s, err := a.e.Next(context.Background())
		if err != nil {
			return
		}
		go a.take(s)
	}
}

func (a *agent) take(s *SYN) {
	fmt.Printf("syn %v %v lane %d mss %d scale %d sack %v timestamps %v\n", s.Client, s.Server, s.Lane, s.Options.MSS, s.Options.WindowScale, s.Options.SACK, s.Options.HasTimestamps)
	switch a.cfg.Answer {
	case "hold":
		return
	case "pass":
		fmt.Println("passed", s.Pass())
		return
	case "drop":
		fmt.Println("dropped", s.Drop())
		return
	case "refuse":
		fmt.Println("refused", s.Refuse())
		return
	}
	a.join(s)
}

func (a *agent) join(s *SYN) {
	patience := a.cfg.Patience
	if patience == 0 {
		patience = 5 * time.Second
	}
	ctx, end := context.WithTimeout(context.Background(), patience)
	defer end()
	far, peer, err := a.e.Dial(ctx, s.Client, s.Server)
	if err != nil {
		fmt.Println("no server:", err)
		switch {
		case errors.Is(err, ErrRefused):
			fmt.Println("refused", s.Refuse())
		case errors.Is(err, ErrSilent):
			fmt.Println("dropped", s.Drop())
		default:
			fmt.Println("passed", s.Pass())
		}
		return
	}
	near, err := s.Accept(ctx)
	if err != nil {
		fmt.Println("no client:", err)
		reset(far)
		return
	}
	fmt.Printf("joined %v %v peer mss %d scale %d known %v\n", s.Client, s.Server, peer.MSS, peer.WindowScale, peer.Sequence != 0)
	for _, c := range []*net.TCPConn{near, far} {
		own := a.e.Own(c)
		fmt.Printf("own %v mss %d scaled %v known %v\n", c.RemoteAddr(), own.MSS, own.Scaled, own.Sequence != 0)
	}
	a.copy(near, far)
}

// copy copies both ways; a half that ends well is finished, one that ends otherwise resets both.
func (a *agent) copy(near, far *net.TCPConn) {
	a.mu.Lock()
	a.live[near], a.live[far] = true, true
	a.mu.Unlock()
	var both sync.WaitGroup
	half := func(to, from *net.TCPConn) {
		if _, err := io.Copy(to, from); err != nil {
			reset(to)
			reset(from)
			return
		}
		if err := a.e.Finished(to); err == nil {
			to.CloseWrite()
		}
	}
	both.Go(func() { half(near, far) })
	both.Go(func() { half(far, near) })
	both.Wait()
	near.Close()
	far.Close()
	a.mu.Lock()
	delete(a.live, near)
	delete(a.live, far)
	a.mu.Unlock()
}
