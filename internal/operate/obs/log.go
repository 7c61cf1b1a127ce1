package obs

import (
	"fmt"
	"io"
	"log/slog"
	"strings"
)

// NewLogger returns a logger that writes lines of the given format ("text" or "json") from the given
// level up ("debug", "info", "warn" or "error") to w. Empty strings mean text and info.
func NewLogger(w io.Writer, format, level string) (*slog.Logger, error) {
	min, err := parseLevel(level)
	if err != nil {
		return nil, err
	}
	opts := &slog.HandlerOptions{Level: min}
	switch strings.ToLower(format) {
	case "", "text":
		return slog.New(slog.NewTextHandler(w, opts)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(w, opts)), nil
	}
	return nil, fmt.Errorf("log format %q: want text or json", format)
}

// parseLevel refuses slog's offsets ("info+2"), which nobody means.
func parseLevel(s string) (slog.Level, error) {
	switch strings.ToLower(s) {
	case "debug":
		return slog.LevelDebug, nil
	case "", "info":
		return slog.LevelInfo, nil
	case "warn", "warning":
		return slog.LevelWarn, nil
	case "error":
		return slog.LevelError, nil
	}
	return 0, fmt.Errorf("log level %q: want debug, info, warn or error", s)
}
