package wording

import "testing"

func TestCount(t *testing.T) {
	for _, c := range []struct {
		n    int
		noun string
		want string
	}{{0, "object", "0 objects"}, {1, "object", "1 object"}, {2, "object", "2 objects"}, {1, "dependency", "1 dependency"},
		{2, "dependency", "2 dependencies"}} {
		if got := Count(c.n, c.noun); got != c.want {
			t.Errorf("Count(%d, %q) = %q, want %q", c.n, c.noun, got, c.want)
		}
	}
}

func TestFew(t *testing.T) {
	for _, c := range []struct {
		words           []string
		separator, want string
	}{
		{nil, ", ", ""}, {[]string{"a", "b"}, ", ", "a, b"}, {[]string{"a", "b"}, "; ", "a; b"},
		{[]string{"a", "b", "c", "d"}, ", ", "a, b and 2 more"}, {[]string{"a", "b", "c"}, "; ", "a; b; and 1 more"},
	} {
		if got := Few(c.words, 2, c.separator); got != c.want {
			t.Errorf("Few(%q, 2, %q) = %q, want %q", c.words, c.separator, got, c.want)
		}
	}
}

func TestShellWord(t *testing.T) {
	for word, want := range map[string]string{
		"/home/ann/data": "/home/ann/data", "": "''", "a b": "'a b'", "it's": `'it'\''s'`, "$HOME": "'$HOME'", "a;b": "'a;b'",
		"a&b": "'a&b'",
	} {
		if got := ShellWord(word); got != want {
			t.Errorf("ShellWord(%q) = %s, want %s", word, got, want)
		}
	}
}

func TestRestartManagerQuotesEachFlag(t *testing.T) {
	want := "`xpkg down` and `xpkg up --detach --a=b '--c=d;e'`, or in a cluster with `xpkg bootstrap --apply --manager-arg=--a=b '--manager-arg=--c=d;e'`; repeat the other flags with which it was started, such as --data-dir: `xpkg down` prints those of this machine"
	if got := RestartManager("--a=b", "--c=d;e"); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
