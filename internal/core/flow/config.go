package flow

import (
	"errors"
	"fmt"

	"scaffold.dev/scaffold/sid"
)

// SetTold says whether somebody acts on Tell outputs.
func (m *Machine) SetTold(told bool) { m.told = told }

// AcceptLocator says whether what arrives for the locator is ours.
func (m *Machine) AcceptLocator(l sid.Locator, accept bool) { m.locators[l] = accept }

// ErrSuffix is in the error of Admit when two services of one host share a suffix.
var ErrSuffix = errors.New("another service of this host has the same suffix")

// Admit lets first packets for the triple in.
func (m *Machine) Admit(t sid.Triple) error {
	s, err := m.know(t.Service)
	if err != nil {
		return fmt.Errorf("admit %v: %w", t, err)
	}
	i := instance{t.Service.Suffix, t.Proto, t.Port}
	if !m.admitted[i] {
		m.admitted[i] = true
		s.live++
	}
	return nil
}

// Withdraw bounces later first packets for the triple.
func (m *Machine) Withdraw(t sid.Triple) {
	i := instance{t.Service.Suffix, t.Proto, t.Port}
	if m.admitted[i] {
		delete(m.admitted, i)
		m.services[t.Service.Suffix].live--
	}
}

// SetService sets a service's policy for flows that begin afterwards.
func (m *Machine) SetService(id sid.ServiceID, p Policy) error {
	m.policies[m.cfg.Space.ServiceAddr(id)] = p
	if p.Datagrams != Unset {
		return nil
	}
	_, err := m.know(id)
	return err
}

// SetAccess says from where first packets of a service are taken; nil: from everywhere.
func (m *Machine) SetAccess(id sid.ServiceID, allows func(sid.Locator) bool) error {
	s, err := m.know(id)
	if err == nil {
		s.allows = allows
	}
	return err
}

// know notes what the suffix means, unless it means something else to a live instance.
func (m *Machine) know(id sid.ServiceID) (*service, error) {
	upper := sid.LocatorOf(m.cfg.Space.ServiceAddr(id))
	s := m.services[id.Suffix]
	switch {
	case s == nil:
		s = &service{upper: upper}
		m.services[id.Suffix] = s
	case s.upper != upper && s.live > 0:
		return nil, ErrSuffix
	}
	s.upper = upper
	return s, nil
}
