package controlmode

import "time"

// Event is one thing tmux said on a control connection: pane output, a
// notification, or a step of a reply. Events of one connection are delivered in
// the order tmux wrote them. Two connections have no common order.
type Event interface{ event() }

// Output is %output or %extended-output. The event and its Data belong to the
// parser and are valid only until the callback returns; Data is decoded and is
// bytes, not text: it may end in the middle of a character or an escape.
type Output struct {
	Pane PaneID
	// Age is how long tmux held the data, %extended-output only.
	Age time.Duration
	// Extended tells %extended-output, which tmux sends to clients with
	// pause-after.
	Extended bool
	Data     []byte
}

// BlockBegin is a %begin line: tmux has started to answer a command. Everything
// that arrived before it happened before the command ran (tmux 3.2a to 3.8,
// control.c: replies queue behind the output already queued for the client).
type BlockBegin struct {
	Guard Guard
}

// BlockEnd is the matching %end or %error line. Body holds the lines between the
// guards, each with its LF, and is owned by the receiver of the event. Error
// tells %error.
type BlockEnd struct {
	Guard Guard
	Body  []byte
	Error bool
	// Truncated is the number of body bytes dropped because the body was
	// longer than the parser's limit.
	Truncated int64
}

// Guard is the three numbers of %begin, %end and %error. A block is closed only
// by a guard whose three numbers equal those of its %begin.
type Guard struct {
	Time   uint64 // server time, seconds
	Number uint64 // server-wide item number, 32 bits, wraps
	Flags  uint64 // 1: a command of this client's input; 0: anything else
}

// Notification kinds without fields of their own are told apart by type.
type (
	// PaneModeChanged is %pane-mode-changed: a pane entered or left a mode.
	PaneModeChanged struct{ Pane PaneID }
	// Pause is %pause: tmux stopped sending the output of a pane and dropped
	// what was queued.
	Pause struct{ Pane PaneID }
	// Continue is %continue: output of the pane is sent again.
	Continue struct{ Pane PaneID }
	// SessionsChanged is %sessions-changed: a session was created or destroyed.
	SessionsChanged struct{}
	// SessionChanged is %session-changed: this client is now on that session.
	SessionChanged struct {
		Session SessionID
		Name    string
	}
	// ClientSessionChanged is %client-session-changed: another client moved.
	ClientSessionChanged struct {
		Client  string
		Session SessionID
		Name    string
	}
	// ClientDetached is %client-detached.
	ClientDetached struct{ Client string }
	// SessionRenamed is %session-renamed.
	SessionRenamed struct {
		Session SessionID
		Name    string
	}
	// SessionWindowChanged is %session-window-changed: the current window of a
	// session changed. It can precede the %window-add of that window.
	SessionWindowChanged struct {
		Session SessionID
		Window  WindowID
	}
	// WindowAdd is %window-add, or %unlinked-window-add with Unlinked set.
	WindowAdd struct {
		Window   WindowID
		Unlinked bool
	}
	// WindowClose is %window-close or %unlinked-window-close. tmux up to 3.7c
	// confuses the two, so neither means that the window is gone.
	WindowClose struct {
		Window   WindowID
		Unlinked bool
	}
	// WindowRenamed is %window-renamed or %unlinked-window-renamed.
	WindowRenamed struct {
		Window   WindowID
		Name     string
		Unlinked bool
	}
	// WindowPaneChanged is %window-pane-changed: the active pane of a window.
	WindowPaneChanged struct {
		Window WindowID
		Pane   PaneID
	}
	// LayoutChange is %layout-change. Visible differs from Layout while a pane
	// is zoomed.
	LayoutChange struct {
		Window  WindowID
		Layout  string
		Visible string
		Flags   string
	}
	// SubscriptionChanged is %subscription-changed. Fields that do not apply
	// are nil. Value can be cut short if the format yields a newline.
	SubscriptionChanged struct {
		Name    string
		Session *SessionID
		Window  *WindowID
		Index   *int
		Pane    *PaneID
		Value   string
	}
	// PasteBufferChanged is %paste-buffer-changed (3.4 on).
	PasteBufferChanged struct{ Name string }
	// PasteBufferDeleted is %paste-buffer-deleted (3.4 on).
	PasteBufferDeleted struct{ Name string }
	// Message is %message (3.4 on): display-message aimed at this client.
	Message struct{ Text string }
	// ConfigError is %config-error (3.4 on).
	ConfigError struct{ Text string }
	// Exit is %exit, the last line before end of file. Reason is mostly empty.
	Exit struct{ Reason string }
	// Unknown is a %word this package does not know, or one it knows whose
	// fields it cannot read. Line is the whole line but for the last Cut bytes
	// of one beyond the parser's limit.
	Unknown struct {
		Line string
		Cut  int64
	}
	// Stray is a line outside every block that does not start with %: late
	// run-shell output, errors of a sourced file, the rest of a subscription
	// value with a newline. It is never part of a reply. Cut is as in Unknown.
	Stray struct {
		Line string
		Cut  int64
	}
)

func (*Output) event()              {}
func (BlockBegin) event()           {}
func (BlockEnd) event()             {}
func (PaneModeChanged) event()      {}
func (Pause) event()                {}
func (Continue) event()             {}
func (SessionsChanged) event()      {}
func (SessionChanged) event()       {}
func (ClientSessionChanged) event() {}
func (ClientDetached) event()       {}
func (SessionRenamed) event()       {}
func (SessionWindowChanged) event() {}
func (WindowAdd) event()            {}
func (WindowClose) event()          {}
func (WindowRenamed) event()        {}
func (WindowPaneChanged) event()    {}
func (LayoutChange) event()         {}
func (SubscriptionChanged) event()  {}
func (PasteBufferChanged) event()   {}
func (PasteBufferDeleted) event()   {}
func (Message) event()              {}
func (ConfigError) event()          {}
func (Exit) event()                 {}
func (Unknown) event()              {}
func (Stray) event()                {}
