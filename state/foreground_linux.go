package state

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// maxKin bounds how many processes of a pane are looked at.
const maxKin = 4096

// look reads what a terminal waits for: the process leader has it as its
// controlling terminal. It has no effect on either, and takes well below a
// millisecond for a pane with few processes.
func look(leader int, tty string) *sample {
	s := &sample{tty: tty}
	p, err := readProcess(leader)
	switch {
	case errors.Is(err, os.ErrNotExist), errors.Is(err, unix.ESRCH):
		s.gone = true
		return s
	case err != nil:
		s.problem = fmt.Sprintf("process %d cannot be read: %v", leader, err)
		return s
	case p.state == 'Z':
		s.gone = true
		return s
	case p.terminal == 0 || p.foreground <= 0: // just forked: tmux has not let it go yet
		s.starting = true
		return s
	}
	if s.term, err = readTermios(tty, p.terminal); err != nil {
		s.problem = fmt.Sprintf("terminal %s cannot be read: %v", tty, err)
		return s
	}
	s.leader = p.foreground
	kin := kindred(p)
	for _, k := range kin {
		if k.group == s.leader && k.state != 'Z' && k.terminal == p.terminal {
			k.describe()
			s.group = append(s.group, *k)
		}
	}
	if len(s.group) == 1 {
		s.group[0].copied = copied(&s.group[0], kin)
	}
	if len(s.group) == 0 { // a child of nobody in the pane: it was left behind by its parent
		s.group = groupMembers(s.leader, p.terminal)
	}
	if !s.term.canonical && !s.term.output {
		if inner := lookBehind(kin, p.terminal); inner != nil {
			return inner
		}
	}
	return s
}

// copied tells whether a process runs the program of its parent with the same
// arguments, as the subshell of an interactive shell does.
func copied(p *process, kin []*process) bool {
	for _, k := range kin {
		if k.pid == p.parent && k.group != p.group {
			k.describe()
			return k.exe == p.exe && slices.Equal(k.args, p.args)
		}
	}
	return false
}

// lookBehind finds the terminal that a relay passes keys on to, if its processes
// are descendants and may be read.
func lookBehind(kin []*process, outer uint64) *sample {
	for _, k := range kin {
		// The first process on another terminal leads its session.
		if k.terminal == 0 || k.terminal == outer || k.state == 'Z' {
			continue
		}
		tty := ttyPath(k.terminal)
		if tty == "" {
			continue
		}
		if s := look(k.pid, tty); s.problem == "" && !s.gone {
			s.relayed = true
			return s
		}
		return nil
	}
	return nil
}

// ttyPath is the path of a pseudo terminal (major numbers 136 to 143), "" for
// anything else.
func ttyPath(dev uint64) string {
	major, minor := unix.Major(dev), unix.Minor(dev)
	if major < 136 || major > 143 {
		return ""
	}
	return "/dev/pts/" + strconv.FormatUint(uint64(major-136)<<20|uint64(minor), 10)
}

// readTermios reads the settings of a terminal that must be the given device:
// the kernel gives the numbers of ended terminals to new ones. The terminal is
// open for an instant only, since an open one keeps its pane from ending.
func readTermios(tty string, dev uint64) (t termios, err error) {
	fd, err := unix.Open(tty, unix.O_RDONLY|unix.O_NOCTTY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return t, err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return t, err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFCHR || st.Rdev != dev {
		return t, errors.New("it is another terminal now")
	}
	k, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	if err != nil {
		return t, err
	}
	return termios{
		canonical: k.Lflag&unix.ICANON != 0, echo: k.Lflag&unix.ECHO != 0, signals: k.Lflag&unix.ISIG != 0,
		newline: k.Iflag&unix.ICRNL != 0, quoteKey: k.Cc[unix.VLNEXT] != 0, output: k.Oflag&unix.OPOST != 0,
	}, nil
}

// readProcess reads /proc/PID/stat. The name in it may hold any byte but NUL, so
// the fields are counted from the last parenthesis.
func readProcess(pid int) (*process, error) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return nil, err
	}
	open, end := bytes.IndexByte(b, '('), bytes.LastIndexByte(b, ')')
	if open < 0 || end < open {
		return nil, errors.New("unreadable stat")
	}
	f := bytes.Fields(b[end+1:])
	if len(f) < 20 || len(f[0]) != 1 {
		return nil, errors.New("unreadable stat")
	}
	num := func(i int) int {
		n, _ := strconv.Atoi(string(f[i]))
		return n
	}
	p := &process{
		pid: pid, comm: string(b[open+1 : end]), state: f[0][0], parent: num(1), group: num(2), foreground: num(5),
	}
	p.started, _ = strconv.ParseUint(string(f[19]), 10, 64)
	// The number packs a device as the kernel's new_encode_dev does.
	if n := uint32(num(4)); n != 0 {
		p.terminal = unix.Mkdev(n>>8&0xfff, n&0xff|n>>12&0xfff00)
	}
	return p, nil
}

// describe reads what may be refused for another user's process.
func (p *process) describe() {
	dir := "/proc/" + strconv.Itoa(p.pid)
	p.exe, _ = os.Readlink(dir + "/exe")
	if b, err := os.ReadFile(dir + "/cmdline"); err == nil && len(b) > 0 {
		p.args = strings.Split(strings.TrimSuffix(string(b), "\x00"), "\x00")
	}
	if b, err := os.ReadFile(dir + "/wchan"); err == nil && string(b) != "0" {
		p.blocked = string(b)
	}
}

// kindred lists a process and its descendants, parents first.
func kindred(p *process) []*process {
	all := []*process{p}
	for i := 0; i < len(all) && len(all) < maxKin; i++ {
		for _, pid := range children(all[i].pid) {
			if k, err := readProcess(pid); err == nil {
				all = append(all, k)
			}
		}
	}
	return all
}

// children lists the children of a process; of all its threads, since each may
// have started some.
func children(pid int) []int {
	dir := "/proc/" + strconv.Itoa(pid) + "/task"
	tasks, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var all []int
	for _, t := range tasks {
		b, _ := os.ReadFile(dir + "/" + t.Name() + "/children")
		for f := range bytes.FieldsSeq(b) {
			if n, err := strconv.Atoi(string(f)); err == nil {
				all = append(all, n)
			}
		}
	}
	return all
}

// groupMembers finds the processes of a group on a terminal among all.
func groupMembers(group int, terminal uint64) []process {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	var all []process
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		p, err := readProcess(pid)
		if err == nil && p.group == group && p.terminal == terminal && p.state != 'Z' {
			p.describe()
			all = append(all, *p)
		}
	}
	return all
}

// foregroundOf tells which process group has the terminal of a process, and the
// process's own group; ok is false if it has none or may not be read.
func foregroundOf(pid int) (foreground, own int, ok bool) {
	p, err := readProcess(pid)
	if err != nil || p.state == 'Z' || p.foreground <= 0 {
		return 0, 0, false
	}
	return p.foreground, p.group, true
}

// jobsOf lists the process groups that a shell's children lead.
func jobsOf(shell int) []int {
	var jobs []int
	for _, pid := range children(shell) {
		if p, err := readProcess(pid); err == nil && p.group == pid && p.state != 'Z' {
			jobs = append(jobs, pid)
		}
	}
	return jobs
}

// stoppedIn tells whether a process of a group on the terminal of a process is
// stopped.
func stoppedIn(group, pid int) bool {
	p, err := readProcess(pid)
	if err != nil || group == 0 {
		return false
	}
	for _, q := range groupMembers(group, p.terminal) {
		if q.state == 'T' || q.state == 't' {
			return true
		}
	}
	return false
}
