package cli

import (
	"context"
	"crypto/ed25519"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	"scaffold.dev/scaffold/internal/api"
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
	"scaffold.dev/scaffold/internal/trust"
)

// A tokenUse is what `join` and `login` share: a token that is shown to a controller, once that has shown to be of
// the token's network.
type tokenUse struct {
	text, name string
	token      trust.Token
	addresses  []string
}

func (t *tokenUse) add(cmd *cobra.Command, name string) {
	cmd.Flags().StringVar(&t.text, "token", "", "what \"scaffold token create\" printed; - reads it from standard input")
	cmd.Flags().StringVar(&t.name, "name", "", name)
	cmd.MarkFlagRequired("token")
}

func (t *tokenUse) parse(args []string) (err error) {
	if t.text == "-" {
		if _, err := fmt.Fscan(os.Stdin, &t.text); err != nil {
			return failf(ExitUsage, "", "no token on standard input")
		}
	}
	if t.token, err = trust.ParseToken(t.text); err != nil {
		return fail(ExitUsage, "`scaffold token create` where the controller runs prints one", err)
	}
	t.addresses = args
	if len(args) == 0 {
		t.addresses = t.token.Addresses
	}
	if len(t.addresses) == 0 {
		return fail(ExitUsage, "name it: HOST:PORT", errNoAddress)
	}
	for i, a := range t.addresses {
		a = strings.TrimPrefix(strings.TrimPrefix(a, "https://"), "http://")
		if _, port, err := net.SplitHostPort(a); err != nil || api.CheckPort(port) != nil {
			return failf(ExitUsage, "HOST:PORT, as 192.0.2.1:23728 or [2001:db8::1]:23728", "%q is no address of a controller", a)
		}
		t.addresses[i] = a
	}
	return nil
}

// cleanName makes a member's name of a machine's or a user's.
func cleanName(s string) string {
	s, _, _ = strings.Cut(strings.ToLower(s), ".")
	return strings.ReplaceAll(s, "_", "-")
}

// meet finds the controller, holds it against the token, and compares the clocks. Nothing secret is said.
func (t *tokenUse) meet(ctx context.Context) (*apiv1.MeetResponse, error) {
	_, stranger, err := ed25519.GenerateKey(nil)
	if err != nil {
		return nil, err
	}
	joiner := trust.NewJoiner(stranger, t.token.Pin)
	var failures []error
	for i, address := range t.addresses {
		client, err := trustClient(address, joiner.Meeting())
		if err != nil {
			return nil, err
		}
		once, cancel := context.WithTimeout(ctx, answerTime)
		met, err := client.Meet(once, connect.NewRequest(&apiv1.MeetRequest{}))
		cancel()
		if err != nil {
			failures = append(failures, unmet(address, err))
			continue
		}
		t.addresses[0], t.addresses[i] = t.addresses[i], t.addresses[0]
		return met.Msg, compareClocks(time.UnixMilli(met.Msg.NowUnixMs), time.Now())
	}
	return nil, inOneLine(failures)
}

// inOneLine is all that was met in vain, with the code and the hint of the first.
func inOneLine(failures []error) error {
	var first *exitError
	if !errors.As(failures[0], &first) {
		return errors.Join(failures...)
	}
	var all []string
	for _, f := range failures {
		all = append(all, f.Error())
	}
	return failf(first.code, first.hint, "%s", strings.Join(all, "; "))
}

func trustClient(address string, who *tls.Config) (apiv1connect.TrustClient, error) {
	client, base, err := api.DialAs("https://"+address, who)
	if err != nil {
		return nil, fail(ExitUsage, "", err)
	}
	return apiv1connect.NewTrustClient(client, base), nil
}

// unmet says why a controller was not met.
func unmet(address string, err error) error {
	said := said(err)
	switch {
	case strings.Contains(said, trust.ErrPin.Error()):
		return failf(ExitRefused, "is the address right, and the token of this network?", "%s: %s", address, said)
	case strings.Contains(said, "first record does not look like a TLS handshake"), strings.Contains(said, "server gave HTTP response"):
		return failf(ExitRefused, "start the controller with --trust keys; an open network is joined without a token", "%s: it does not speak TLS: that network is open, or it is no controller", address)
	}
	return failf(ExitUnreachable, "is the controller running there, and its port open? `scaffold controld` listens on port 23728 if nothing else is said", "no answer from %s: %s", address, said)
}

func said(err error) string {
	var known *connect.Error
	if errors.As(err, &known) {
		return known.Message()
	}
	return err.Error()
}

func compareClocks(theirs, ours time.Time) error {
	apart := ours.Sub(theirs).Round(time.Second)
	if apart.Abs() <= trust.Skew {
		return nil
	}
	return failf(ExitRefused, "set the clock that is wrong, here or there; NTP keeps them right", "the clocks are %v apart: this machine's says %s, the controller's %s",
		apart.Abs(), trust.Stamp(ours), trust.Stamp(theirs))
}

// redeem makes the directory's key a member's.
func (t *tokenUse) redeem(ctx context.Context, dir trust.Directory) error {
	key, err := dir.Key()
	if err != nil {
		return fail(ExitMissing, "this needs root: try again with sudo", err)
	}
	joiner := trust.NewJoiner(key, t.token.Pin)
	client, err := trustClient(t.addresses[0], joiner.Config())
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	answer, err := client.Redeem(ctx, connect.NewRequest(&apiv1.RedeemRequest{Id: t.token.ID[:], Secret: t.token.Secret[:], Name: t.name}))
	if err != nil {
		return explain(err, "https://"+t.addresses[0], "")
	}
	credential := trust.Credential{Certificate: answer.Msg.Certificate, Roots: answer.Msg.Roots}
	if _, err := trust.NewMember(key, credential); err != nil {
		return fmt.Errorf("the controller's answer: %w", err)
	}
	if err := dir.Save(credential); err != nil {
		return err
	}
	return dir.SaveAddresses(t.addresses)
}
