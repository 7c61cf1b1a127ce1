// Package output is how commands print what they were answered: as tables for people, as JSON for programs.
package output

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/pflag"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"scaffold.dev/scaffold/internal/cli/command"
)

// Flag is the -o flag of what prints messages of the API.
type Flag struct{ command.Format }

// Add gives a command the -o flag.
func Add(flags *pflag.FlagSet) *Flag {
	o := new(Flag)
	command.AddFormat(flags, &o.Format)
	return o
}

// Print writes msg as JSON, or what table draws.
func (o *Flag) Print(w io.Writer, msg proto.Message, table func(*Table)) error {
	if o.JSON() {
		return WriteJSON(w, msg, "  ")
	}
	return Draw(w, table)
}

// WriteJSON writes the message in protobuf's JSON mapping, the same that the HTTP API speaks; an
// empty indent means one line. protojson varies its white space on purpose, so it is laid out anew.
func WriteJSON(w io.Writer, msg proto.Message, indent string) error {
	raw, err := protojson.MarshalOptions{EmitDefaultValues: true}.Marshal(msg)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	if indent == "" {
		err = json.Compact(&out, raw)
	} else {
		err = json.Indent(&out, raw, "", indent)
	}
	if err != nil {
		return err
	}
	out.WriteByte('\n')
	_, err = w.Write(out.Bytes())
	return err
}

// WriteValue writes as JSON what is no message of the API.
func WriteValue(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// A Table aligns its columns.
type Table struct{ tw *tabwriter.Writer }

// Draw prints a table with its columns in line.
func Draw(w io.Writer, draw func(*Table)) error {
	t := &Table{tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)}
	draw(t)
	return t.tw.Flush()
}

// Row prints the cells; an empty one is shown as a dash so that columns stay countable.
func (t *Table) Row(cells ...any) {
	text := make([]string, len(cells))
	for i, c := range cells {
		if text[i] = fmt.Sprint(c); text[i] == "" {
			text[i] = "-"
		}
	}
	fmt.Fprintln(t.tw, strings.Join(text, "\t"))
}

// Age says how long ago a time in milliseconds since 1970 was; "" for never.
func Age(unixMS int64) string {
	if unixMS == 0 {
		return ""
	}
	return Short(max(0, time.Since(time.UnixMilli(unixMS))))
}

// Ago is age with its direction in time.
func Ago(unixMS int64) string {
	if unixMS == 0 {
		return ""
	}
	return Age(unixMS) + " ago"
}

// Short prints a duration with one unit below the largest: people compare, they do not calculate.
func Short(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("%dms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%dd%dh", int(d.Hours())/24, int(d.Hours())%24)
}

// Sorted are the keys of a map in order.
func Sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// OrElse is text, or other where there is none.
func OrElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

// Times says how often.
func Times(n uint64) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// Second is a time for people; - for none.
func Second(unix int64) string {
	if unix == 0 {
		return "-"
	}
	return time.Unix(unix, 0).UTC().Format(time.DateTime)
}

// Bytes is an amount of them as people read it.
func Bytes(n uint64) string {
	const units = "kMGTPE"
	if n < 1000 {
		return fmt.Sprintf("%d B", n)
	}
	size, i := float64(n)/1000, 0
	for size >= 999.5 && i < len(units)-1 {
		size, i = size/1000, i+1
	}
	return fmt.Sprintf("%.3g %cB", size, units[i])
}
