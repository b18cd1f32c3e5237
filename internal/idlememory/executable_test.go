package idlememory

import (
	"slices"
	"testing"
)

func TestMappingsOfTheExecutable(t *testing.T) {
	const maps = `00400000-02ae5000 r-xp 00000000 fe:00 4075 /opt/a b/xpkg
02ae5000-05222000 r--p 026e5000 fe:00 4075                               /opt/a b/xpkg
05222000-0531c000 rw-p 04e22000 fe:00 4075                               /opt/a b/xpkg
0531c000-053d1000 rw-p 00000000 00:00 0
c000000000-c002000000 rw-p 00000000 00:00 0 [anon: Go: heap]
7f6c1c000000-7f6c1c021000 r--p 00000000 fe:00 17 /opt/a b/xpkg.db
05000000-04000000 r--p 00000000 fe:00 4075 /opt/a b/xpkg
x-y r--p 00000000 fe:00 4075 /opt/a b/xpkg
garbage
`
	want := []mapping{{0x400000, 0x2ae5000}, {0x2ae5000, 0x5222000}}
	if got := mappingsOf("/opt/a b/xpkg", maps); !slices.Equal(got, want) {
		t.Errorf("got %x, want %x", got, want)
	}
}
