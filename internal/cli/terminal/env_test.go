package terminal

import "testing"

// The command of the user with a further flag can be pasted: words are quoted, and no flag follows "--".
func TestCommandWithCanBePasted(t *testing.T) {
	for want, args := range map[string][]string{
		"xpkg uninstall gcp --dry-run":                       {"uninstall", "gcp"},
		"xpkg uninstall -l 'team in (a)' --dry-run":          {"uninstall", "-l", "team in (a)"},
		"xpkg uninstall --wait 1m --dry-run -- provider gcp": {"uninstall", "--wait", "1m", "--", "provider", "gcp"},
	} {
		if got := (&Env{Args: args}).CommandWith("--dry-run"); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
