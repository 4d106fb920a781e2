package state

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// verifyTries is how often a listing is repeated that somebody may have changed
// tmux amid.
const verifyTries = 5

// ErrRestless: tmux changed all the time while it was being compared.
var ErrRestless = errors.New("tmux changes faster than it can be listed twice")

// Verification is the outcome of Verify.
type Verification struct {
	// Sessions, Windows and Panes were compared.
	Sessions, Windows, Panes int
	// Problems are the invariants that the model breaks and the differences
	// between it and tmux's own listing, one a line; none is the promise.
	Problems []string
}

// Verify compares what a full read is answered with to what a tmux process lists,
// over no connection of ours, and checks the invariants. A difference counts only
// if tmux lists the same before and after. It runs a few tmux processes and
// blocks as long as they take. Without a server nothing is compared. ErrRestless.
func (m *Mirror) Verify(ctx context.Context) (*Verification, error) {
	return m.verify(ctx, m.byProcess)
}

func (m *Mirror) verify(ctx context.Context, list query) (*Verification, error) {
	for range verifyTries {
		before, err := m.askBy(ctx, Full, list)
		if err != nil {
			return nil, err
		}
		mod, err := m.Arrive(Full).Model(ctx, Full)
		if err != nil {
			return nil, err
		}
		v := &Verification{Sessions: len(mod.Sessions), Windows: len(mod.Windows), Panes: len(mod.Panes)}
		if err := Check(mod); err != nil {
			v.Problems = strings.Split(err.Error(), "\n")
		}
		diff := Diff(before, mod, unlikeProcess(before)...)
		if diff == "" {
			return v, nil
		}
		after, err := m.askBy(ctx, Full, list)
		if err != nil {
			return nil, err
		}
		// The command of a pane is two reads of the kernel, and changes by itself.
		diff = Diff(before, mod, append(unlikeProcess(before), "Pane.Command")...)
		if Diff(before, after) == "" {
			if diff != "" {
				v.Problems = append(v.Problems, strings.Split(strings.TrimSpace(diff), "\n")...)
			}
			return v, nil
		}
	}
	return nil, fmt.Errorf("verify: %w", ErrRestless)
}

// unlikeProcess names the fields that tmux tells plain and control clients
// differently: from 3.8 on, layouts are JSON for the former.
func unlikeProcess(listing *Model) []string {
	if len(listing.Windows) > 0 && strings.HasPrefix(listing.Windows[0].Layout, "{") {
		return []string{"Window.Layout"}
	}
	return nil
}

// Recordings are the last bytes of the conversations with tmux, by client, with
// what panes print masked.
func (m *Mirror) Recordings() map[string][]byte {
	all := map[string][]byte{}
	if att := m.attachedNow(); att != nil {
		all["structure"] = att.proc.Dump()
	}
	m.watches.mu.Lock()
	defer m.watches.mu.Unlock()
	for id, s := range m.watches.streams {
		all["stream "+id.String()] = s.proc.Dump()
	}
	return all
}
