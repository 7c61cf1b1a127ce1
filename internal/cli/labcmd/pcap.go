package labcmd

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"scaffold.dev/scaffold/internal/cli/command"
	"scaffold.dev/scaffold/internal/cli/exit"
	"scaffold.dev/scaffold/internal/cli/labs"
	"scaffold.dev/scaffold/internal/cli/output"
	"scaffold.dev/scaffold/internal/lab"
)

func labPcapCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "pcap NODE PEER",
		Short: "Record what crosses an emulated link, as it crosses",
		Long: `Pcap writes every packet that arrives over the link, in both directions, as a file that tcpdump and Wireshark
read, until it is interrupted. Each packet of a train of segments is recorded for itself.`,
		Example: "  scaffold lab pcap r1 r2 -w r1-r2.pcap\n  scaffold lab pcap r1 r2 | tcpdump -n -r -",
		Args:    cobra.ExactArgs(2),
	}
	name := addLab(cmd)
	path := cmd.Flags().StringP("write", "w", "", "file to write (default: the standard output)")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		l, err := lab.Open(*name, lab.Options{})
		if err != nil {
			return labs.Fail(err)
		}
		w, done, err := CaptureFile(cmd, *path)
		if err != nil {
			return err
		}
		err = l.Engine().Capture(cmd.Context(), args[0], args[1], w)
		if unwritten := done(); err == nil {
			err = unwritten
		}
		return labs.Fail(err)
	}
	return cmd
}

// CaptureFile is where a recording goes; it is no text for a terminal.
func CaptureFile(cmd *cobra.Command, path string) (w io.Writer, done func() error, err error) {
	if path != "" {
		f, err := os.Create(path)
		if err != nil {
			return nil, nil, err
		}
		return f, f.Close, nil
	}
	if command.ToTerminal(cmd.OutOrStdout()) {
		return nil, nil, exit.Failf(exit.Usage, "", "a recording is no text: name a file with -w, or pipe it into tcpdump -r -")
	}
	return cmd.OutOrStdout(), func() error { return nil }, nil
}

func labReplayCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "replay FILE into NODE:PEER",
		Short: "Play a recording into a port of an emulated link",
		Long: `The frames of a pcap or pcapng file arrive at NODE as if PEER had sent them, at the times of the recording.
Replay returns when all have arrived.`,
		Example: "  scaffold lab replay r1-r2.pcap into r2:r1 --speed 2",
		Args:    cobra.ExactArgs(3),
	}
	name, out := addLab(cmd), output.Add(cmd.Flags())
	speed := cmd.Flags().Float64("speed", 1, "how many times as fast as recorded")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if args[1] != "into" {
			return exit.Failf(exit.Usage, "", "lab replay: expected FILE into NODE:PEER, found %q in the place of into", args[1])
		}
		l, err := lab.Open(*name, lab.Options{})
		if err != nil {
			return labs.Fail(err)
		}
		f, err := command.OpenFile(cmd.Context(), args[0])
		if err != nil {
			return labs.Fail(err)
		}
		defer f.Close()
		r, err := l.Engine().Replay(cmd.Context(), args[2], *speed, f)
		if err != nil {
			return labs.Fail(err)
		}
		if out.JSON() {
			return plainJSON(cmd.OutOrStdout(), r)
		}
		fmt.Fprintf(cmd.OutOrStdout(), "%d of %d frames arrived, %d were lost for lack of memory\n", r.Arrived, r.Frames, r.Lost)
		return nil
	}
	return cmd
}
