package main

import (
	"bufio"
	"os"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// dropImage lets go of the pages of this program that starting it has mapped:
// nearly all of its code and constants, of which a bridge needs a tenth from
// then on. They come back from the page cache one by one as they are used, and
// a dozen bridges do not count as a dozen daemons. Only read-only mappings of
// the program's file are touched, so nothing can be lost; failing is harmless.
func dropImage() {
	exe, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return
	}
	maps, err := os.Open("/proc/self/maps")
	if err != nil {
		return
	}
	defer maps.Close()
	for s := bufio.NewScanner(maps); s.Scan(); {
		// 00400000-00a00000 r-xp 00000000 08:01 1234   /usr/bin/tmux-mcpd
		f := strings.Fields(s.Text())
		if len(f) < 6 || f[1][1] != '-' || f[5] != exe {
			continue
		}
		from, to, _ := strings.Cut(f[0], "-")
		start, err1 := strconv.ParseUint(from, 16, 64)
		end, err2 := strconv.ParseUint(to, 16, 64)
		if err1 != nil || err2 != nil || end <= start {
			continue
		}
		// The address is the kernel's word for memory the collector does not
		// manage.
		addr := uintptr(start)
		_ = unix.Madvise(unsafe.Slice((*byte)(*(*unsafe.Pointer)(unsafe.Pointer(&addr))), end-start), unix.MADV_DONTNEED)
	}
}
