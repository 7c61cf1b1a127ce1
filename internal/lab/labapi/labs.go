package labapi

import (
	"context"
	"errors"
	"fmt"
	"os"

	"connectrpc.com/connect"

	"scaffold.dev/scaffold/internal/lab"
	"scaffold.dev/scaffold/internal/lab/file"
	labv1 "scaffold.dev/scaffold/internal/lab/v1"
	"scaffold.dev/scaffold/internal/operate/obs"
)

// GetVersion says what answers.
func (calls) GetVersion(context.Context, *labv1.GetVersionRequest) (*labv1.Version, error) {
	return &labv1.Version{Version: obs.Version(), Api: 1, Pid: int32(os.Getpid())}, nil
}

// read is the lab file that a call carries.
func read(q *labv1.LabFile) (*file.File, error) {
	if q.Source == "" {
		return nil, bad("no lab file: expected its text as \"source\"")
	}
	if q.Path == "" {
		q.Path = "lab"
	}
	f, err := file.Parse(q.Path, []byte(q.Source))
	if err != nil {
		return nil, err
	}
	if q.Name != "" {
		if err := file.CheckName(q.Name); err != nil {
			return nil, bad("%w", err)
		}
		f.Name = q.Name
	}
	if q.Plane != "" {
		if err := f.SetPlane(q.Plane); err != nil {
			return nil, bad("%w", err)
		}
	}
	return f, nil
}

// Check says what a good lab file holds.
func (calls) Check(_ context.Context, q *labv1.LabFile) (*labv1.Checked, error) {
	f, err := read(q)
	if err != nil {
		return nil, err
	}
	return &labv1.Checked{Name: f.Name, Nodes: int32(len(f.Nodes)), Links: int32(len(f.Links)), Services: int32(len(f.Services))}, nil
}

// ListNames are the labs that are up.
func (s calls) ListNames(context.Context, *labv1.ListNamesRequest) (*labv1.ListNamesResponse, error) {
	names, err := lab.List(s.options(nil))
	return &labv1.ListNamesResponse{Names: names}, err
}

// ListLabs has their states beside.
func (s calls) ListLabs(ctx context.Context, _ *labv1.ListLabsRequest) (*labv1.ListLabsResponse, error) {
	names, err := lab.List(s.options(nil))
	if err != nil {
		return nil, err
	}
	all := &labv1.ListLabsResponse{}
	for _, name := range names {
		status, err := s.GetStatus(ctx, &labv1.LabName{Lab: name})
		if errors.Is(err, lab.ErrNone) {
			continue // it went meanwhile
		}
		if err != nil {
			return nil, err
		}
		all.Labs = append(all.Labs, status)
	}
	return all, nil
}

// GetStatus is the state of a lab.
func (s calls) GetStatus(_ context.Context, q *labv1.LabName) (*labv1.Status, error) {
	l, err := s.open(q.Lab)
	if err != nil {
		return nil, err
	}
	return statusOf(l)
}

func statusOf(l *lab.Lab) (*labv1.Status, error) {
	status, err := l.Status()
	if err != nil {
		return nil, err
	}
	return as(&labv1.Status{}, status)
}

// Up brings a lab up.
func (s calls) Up(ctx context.Context, q *labv1.LabFile, out *connect.ServerStream[labv1.UpEvent]) error {
	f, err := read(q)
	if err != nil {
		return err
	}
	s.cfg.Log("lab %s: up", f.Name)
	told := &events[labv1.UpEvent]{out: out}
	l, err := lab.Up(ctx, f, s.options(func(format string, args ...any) {
		told.send(&labv1.UpEvent{Event: &labv1.UpEvent_Progress{Progress: valid(fmt.Sprintf(format, args...))}})
	}))
	if err != nil {
		return err
	}
	s.remember(f.Name, true)
	status, err := statusOf(l)
	if err != nil {
		return err
	}
	told.send(&labv1.UpEvent{Event: &labv1.UpEvent_Lab{Lab: status}})
	return nil
}

// Down takes a lab down.
func (s calls) Down(ctx context.Context, q *labv1.LabName) (*labv1.Removed, error) {
	if err := file.CheckName(q.Lab); err != nil {
		return nil, notFound("%w", err)
	}
	s.cfg.Log("lab %s: down", q.Lab)
	if err := lab.Down(ctx, q.Lab, s.options(nil)); err != nil {
		return nil, err
	}
	s.remember(q.Lab, false)
	return &labv1.Removed{Removed: []string{q.Lab}}, nil
}

// DownAll takes all labs down, also what crashes left.
func (s calls) DownAll(ctx context.Context, _ *labv1.DownAllRequest) (*labv1.Removed, error) {
	s.cfg.Log("all labs: down")
	removed, err := lab.DownAll(ctx, s.options(nil))
	for _, name := range removed {
		s.remember(name, false)
	}
	return &labv1.Removed{Removed: removed}, err
}
