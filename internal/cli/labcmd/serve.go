package labcmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"scaffold.dev/scaffold/internal/api"
	"scaffold.dev/scaffold/internal/cli/command"
	"scaffold.dev/scaffold/internal/cli/exit"
	"scaffold.dev/scaffold/internal/cli/labs"
	"scaffold.dev/scaffold/internal/cli/output"
	"scaffold.dev/scaffold/internal/lab"
	"scaffold.dev/scaffold/internal/lab/dash"
	"scaffold.dev/scaffold/internal/lab/labapi"
)

// defaultLabSocket is where clients look first.
const defaultLabSocket = "unix:/run/scaffold/lab.sock"

type labServe struct {
	listen, tokenFile      string
	public, down, untilEOF bool
	out                    *output.Flag
}

const aboutLabServe = `Serve offers what the other commands of "scaffold lab" do over HTTP and JSON, to the Python client in
clients/python and to other programs, and shows the labs that are up to a browser, at /. docs/lab-api.md
lists paths and fields.

Whoever can connect runs commands as root on this machine. A Unix socket is root's and its group's. A
TCP address must be of the loopback interface, unless --public allows others, and callers show a token:
the one in --token-file, or one that is made up and printed. There is no TLS: over other networks,
use "ssh -L".

Ctrl-C ends it: what requests have begun is undone, and labs that are up stay up, or go with --down.`

func labServeCommand() *cobra.Command {
	s := &labServe{}
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Offer labs to programs, by JSON over HTTP or gRPC, and show them to a browser",
		Long:  aboutLabServe,
		Example: `  scaffold lab serve
  curl --json '{}' --unix-socket /run/scaffold/lab.sock http://lab/scaffold.lab.v1.Lab/ListLabs
  scaffold lab serve --listen 127.0.0.1:8642 --token-file /root/lab.token`,
		Args: cobra.MatchAll(cobra.NoArgs, func(*cobra.Command, []string) error {
			_, err := s.endpoint()
			return err
		}),
		RunE: func(cmd *cobra.Command, _ []string) error { return s.run(cmd) },
	}
	f := cmd.Flags()
	f.StringVar(&s.listen, "listen", defaultLabSocket, "where to serve: unix:/path/to/socket or address:port; port 0 takes a free one")
	f.StringVar(&s.tokenFile, "token-file", "", "file that holds the token that TCP callers must show; it is made where it does not exist")
	f.BoolVar(&s.public, "public", false, "allow a TCP address that other machines reach; with the token they rule this one")
	f.BoolVar(&s.down, "down", false, "at the end, take down the labs that were brought up through the API")
	f.BoolVar(&s.untilEOF, "until-eof", false, "end when standard input does, for programs that start this one and may die")
	s.out = output.Add(f)
	return cmd
}

func (s *labServe) run(cmd *cobra.Command) error {
	endpoint, err := s.endpoint()
	if err != nil {
		return exit.Fail(exit.Usage, "", err)
	}
	if os.Geteuid() != 0 {
		return labs.Fail(lab.ErrRoot)
	}
	token, err := command.Interruptible(cmd.Context(), func() (string, error) { return s.token(endpoint) })
	if err != nil {
		return err
	}
	listener, err := api.Listen(endpoint.String())
	if errors.Is(err, syscall.EADDRINUSE) {
		return exit.Fail(exit.Refused, "", err)
	}
	if err != nil {
		return err
	}
	if err := s.announce(cmd.OutOrStdout(), listener.Addr(), token); err != nil {
		listener.Close()
		return err
	}
	ctx, cancel := context.WithCancel(cmd.Context())
	defer cancel()
	if s.untilEOF {
		go func() { // ends with the process
			io.Copy(io.Discard, cmd.InOrStdin()) //nolint:errcheck // an error is an end too
			cancel()
		}()
	}
	log := func(format string, args ...any) { cmd.PrintErrf(format+"\n", args...) }
	return s.serve(ctx, listener, labapi.New(labapi.Config{Token: token, Log: log}))
}

// serve returns when nothing is left of what requests had begun.
func (s *labServe) serve(ctx context.Context, listener net.Listener, server *labapi.Server) error {
	mux := http.NewServeMux()
	mux.Handle(labapi.Path, server)
	mux.Handle("/", dash.Handler())
	err := api.Serve(ctx, mux, listener)
	err = errors.Join(err, server.Finish(s.down))
	if listener.Addr().Network() == "unix" {
		os.Remove(filepath.Dir(listener.Addr().String())) // goes only if it is empty
	}
	return err
}

// endpoint refuses addresses that other machines reach.
func (s *labServe) endpoint() (api.Endpoint, error) {
	e, err := api.ParseEndpointAndPort(s.listen)
	switch {
	case err != nil:
		return e, fmt.Errorf("--listen: %w", err)
	case e.Network == "unix" && s.tokenFile != "":
		return e, fmt.Errorf("--token-file: a Unix socket takes no token: its file mode says who may connect")
	case e.Network == "unix" && s.public:
		return e, fmt.Errorf("--public: a Unix socket is of this machine alone: give --listen an address and port, or leave --public out")
	case e.Network == "unix" || s.public || loopback(e.Address):
		return e, nil
	}
	return e, fmt.Errorf("--listen %s: other machines reach this address, and whoever connects with the token runs commands as root: use 127.0.0.1 or [::1], or say --public", s.listen)
}

// loopback reports whether the host in host:port is this machine's own loopback, whatever it resolves to elsewhere.
func loopback(hostport string) bool {
	host, _, _ := net.SplitHostPort(hostport)
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.IsLoopback() || host == "localhost"
}

// shortestToken is one that nobody guesses.
const shortestToken = 16

// token reads or makes what TCP callers must show, "" for a Unix socket.
func (s *labServe) token(e api.Endpoint) (string, error) {
	if e.Network == "unix" {
		return "", nil
	}
	token := labapi.NewToken()
	if s.tokenFile == "" {
		return token, nil
	}
	f, err := os.OpenFile(s.tokenFile, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, os.ErrExist) {
		return readToken(s.tokenFile)
	}
	if err != nil {
		return "", fmt.Errorf("--token-file: %w", err)
	}
	_, err = fmt.Fprintln(f, token)
	return token, errors.Join(err, f.Close())
}

func readToken(path string) (string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("--token-file: %w", err)
	}
	token := strings.TrimSpace(string(text))
	if len(token) < shortestToken || strings.ContainsAny(token, " \t\r\n") {
		return "", exit.Failf(exit.Usage, "", "--token-file %s: expected one word of at least %d characters, or no file, so that one is made", path, shortestToken)
	}
	return token, nil
}

// labServing is what serve prints first.
type labServing struct {
	Listen string `json:"listen"`          // unix:/path or http://address:port
	Token  string `json:"token,omitempty"` // where it was made up for this time
}

// announce says where the API is. A browser takes the token from the part of the address that it sends to nobody.
func (s *labServe) announce(w io.Writer, at net.Addr, token string) error {
	is := labServing{Listen: api.Endpoint{Network: at.Network(), Address: at.String()}.String()}
	if s.tokenFile == "" {
		is.Token = token
	}
	if s.out.JSON() {
		return plainJSON(w, is)
	}
	fmt.Fprintf(w, "serving labs on %s; Ctrl-C ends it\n", is.Listen)
	switch {
	case is.Token != "":
		fmt.Fprintf(w, "whoever has the token runs commands as root: %s\nin a browser: %s/#token=%s\n", token, is.Listen, token)
	case token != "":
		fmt.Fprintf(w, "whoever has the token runs commands as root; it is in %s\n", s.tokenFile)
	default:
		fmt.Fprintln(w, "whoever may open the socket runs commands as root")
	}
	return nil
}
