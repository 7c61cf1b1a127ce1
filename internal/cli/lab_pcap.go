package cli

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

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
			return labFail(err)
		}
		w, done, err := captureFile(cmd, *path)
		if err != nil {
			return err
		}
		defer done()
		return labFail(l.Capture(cmd.Context(), args[0], args[1], w))
	}
	return cmd
}

// captureFile is where a recording goes; it is no text for a terminal.
func captureFile(cmd *cobra.Command, path string) (w io.Writer, done func() error, err error) {
	if path != "" {
		f, err := os.Create(path)
		if err != nil {
			return nil, nil, err
		}
		return f, f.Close, nil
	}
	if toTerminal(cmd.OutOrStdout()) {
		return nil, nil, failf(ExitUsage, "", "a recording is no text: name a file with -w, or pipe it into tcpdump -r -")
	}
	return cmd.OutOrStdout(), func() error { return nil }, nil
}

func terminal(f *os.File) bool {
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
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
	name, out := addLab(cmd), addOutput(cmd.Flags())
	speed := cmd.Flags().Float64("speed", 1, "how many times as fast as recorded")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if args[1] != "into" {
			return failf(ExitUsage, "", "lab replay: expected FILE into NODE:PEER, found %q in the place of into", args[1])
		}
		l, err := lab.Open(*name, lab.Options{})
		if err != nil {
			return labFail(err)
		}
		f, err := os.Open(args[0])
		if err != nil {
			return labFail(err)
		}
		defer f.Close()
		r, err := l.Replay(cmd.Context(), args[2], *speed, f)
		if err != nil {
			return labFail(err)
		}
		if out.json() {
			return plainJSON(cmd.OutOrStdout(), r)
		}
		fmt.Fprintf(cmd.OutOrStdout(), "%d of %d frames arrived, %d were lost for lack of memory\n", r.Arrived, r.Frames, r.Lost)
		return nil
	}
	return cmd
}
