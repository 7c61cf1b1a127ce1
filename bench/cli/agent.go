package cli

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"scaffold.dev/scaffold/bench/agent"
	"scaffold.dev/scaffold/internal/cli/command"
)

// agentCommand holds the load programs that the benchmarks start inside a lab. They are ordinary
// socket programs and print JSON.
func agentCommand() *cobra.Command {
	g := command.Group("agent", "Load programs of the benchmarks", agentServe(), agentStream(), agentRR(), agentConnect(), agentCheckedServe(), agentChecked(), agentCrowd(), agentHosts(), agentFlood(), agentStorm(), agentPaced(), agentRetry(), agentReactive(), agentEngine(), agentSplice(), agentAnswer(), agentPour(), agentDrain())
	g.Hidden = true
	return g
}

func agentServe() *cobra.Command {
	var listen, id string
	var resume bool
	cpu := -1
	cmd := &cobra.Command{
		Use: "serve", Short: "Answer each request by this instance's name, over TCP and UDP", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := agent.Pin(cpu); err != nil {
				return err
			}
			return agent.Serve(cmd.Context(), listen, id, resume, cmd.OutOrStdout())
		},
	}
	cmd.Flags().StringVar(&listen, "listen", "", "address and port, as in [fd5c::1]:7")
	cmd.Flags().StringVar(&id, "id", "", "name of this instance")
	cmd.Flags().BoolVar(&resume, "resume", false, "go on with connections of other instances")
	cmd.Flags().IntVar(&cpu, "cpu", -1, "processor to stay on")
	return cmd
}

func agentStream() *cobra.Command {
	var to string
	var d time.Duration
	cmd := &cobra.Command{
		Use: "stream", Short: "Send over one TCP connection", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, err := agent.Stream(cmd.Context(), to, d)
			if err != nil {
				return err
			}
			return json.NewEncoder(cmd.OutOrStdout()).Encode(r)
		},
	}
	addTarget(cmd, &to, &d)
	return cmd
}

func agentRR() *cobra.Command {
	var to, network string
	var d time.Duration
	cmd := &cobra.Command{
		Use: "rr", Short: "One request after the other over one socket", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, err := agent.RequestResponse(cmd.Context(), network, to, d)
			if err != nil {
				return err
			}
			return json.NewEncoder(cmd.OutOrStdout()).Encode(r)
		},
	}
	addTarget(cmd, &to, &d)
	cmd.Flags().StringVar(&network, "network", "tcp6", "tcp6 or udp6")
	return cmd
}

func agentConnect() *cobra.Command {
	var to, network string
	var d time.Duration
	var n int
	var each bool
	cmd := &cobra.Command{
		Use: "connect", Short: "Connect, ask once, close; again and again", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			out := bufio.NewWriter(cmd.OutOrStdout())
			defer out.Flush()
			enc := json.NewEncoder(out)
			var tell func(agent.Request)
			if each {
				enc = json.NewEncoder(os.Stdout)               // a line as each request ends
				tell = func(q agent.Request) { enc.Encode(q) } //nolint:errcheck // who reads has gone: it ends with the signal
			}
			r := agent.ConnectLoop(cmd.Context(), network, to, n, d, tell)
			if each {
				return nil
			}
			if err := enc.Encode(r); err != nil {
				return fmt.Errorf("print the result: %w", err)
			}
			return nil
		},
	}
	addTarget(cmd, &to, &d)
	cmd.Flags().StringVar(&network, "network", "tcp6", "tcp6 or udp6")
	cmd.Flags().IntVarP(&n, "count", "n", 0, "requests; 0: until the duration ends")
	cmd.Flags().BoolVar(&each, "each", false, "print each request as a line of JSON instead of their sum")
	return cmd
}

func addTarget(cmd *cobra.Command, to *string, d *time.Duration) {
	cpu := cmd.Flags().Int("cpu", -1, "processor to stay on")
	cmd.PreRunE = func(*cobra.Command, []string) error { return agent.Pin(*cpu) }
	cmd.Flags().StringVar(to, "to", "", "address and port")
	cmd.Flags().DurationVar(d, "duration", 0, "how long")
}

func agentSplice() *cobra.Command {
	var listen, to string
	cmd := &cobra.Command{
		Use: "splice", Short: "Pass TCP connections on, by splice", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return agent.Splice(cmd.Context(), listen, to) },
	}
	cmd.Flags().StringVar(&listen, "listen", "", "address and port of IPv4")
	cmd.Flags().StringVar(&to, "to", "", "where they are passed on to")
	return cmd
}

func agentAnswer() *cobra.Command {
	var listen string
	cmd := &cobra.Command{
		Use: "answer", Short: "Answer each byte by one", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return agent.Answer(cmd.Context(), listen, cmd.OutOrStdout())
		},
	}
	cmd.Flags().StringVar(&listen, "listen", "", "address and port of IPv4")
	return cmd
}

func agentPour() *cobra.Command {
	var to string
	var connections int
	var threads bool
	cmd := &cobra.Command{
		Use: "pour", Short: "Write to many connections", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return agent.Pour(cmd.Context(), to, connections, threads)
		},
	}
	cmd.Flags().StringVar(&to, "to", "", "address and port of IPv4")
	cmd.Flags().IntVar(&connections, "connections", 1, "how many")
	cmd.Flags().BoolVar(&threads, "threads", false, "a thread for each, which blocks")
	return cmd
}

func agentDrain() *cobra.Command {
	var listen string
	var threads bool
	cmd := &cobra.Command{
		Use: "drain", Short: "Read many connections, and say how much for each line of the input", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return agent.Drain(cmd.Context(), listen, threads, cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}
	cmd.Flags().StringVar(&listen, "listen", "", "address and port of IPv4")
	cmd.Flags().BoolVar(&threads, "threads", false, "a thread for each, which blocks")
	return cmd
}
