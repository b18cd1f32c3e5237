package terminal

import "testing"

// A user of the kubectl plug-in can paste every command of a message.
func TestCommandsInMessagesHaveTheNameOfTheProgram(t *testing.T) {
	const plugin = "kubectl crossplane"
	for message, want := range map[string]string{
		"Run `xpkg list`, or `xpkg tree`.":      "Run `kubectl crossplane list`, or `kubectl crossplane tree`.",
		"Next:\n  xpkg push -f a.xpkg\n":        "Next:\n  kubectl crossplane push -f a.xpkg\n",
		"Start it with \"xpkg up\".":            "Start it with \"kubectl crossplane up\".",
		"a token, which xpkg finds in the data": "a token, which xpkg finds in the data",
		"`kubectl scale deployment/xpkg`":       "`kubectl scale deployment/xpkg`",
	} {
		if got := nameProgram(plugin, message); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		if got := nameProgram("xpkg", message); got != message {
			t.Errorf("got %q, want %q", got, message)
		}
	}
}
