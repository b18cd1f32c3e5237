package fileutil

import "testing"

func TestUserNamespaceMapsItsUsers(t *testing.T) {
	const host, rootless, remapped = "         0          0 4294967295\n", "0 1000 1\n1 100000 65536\n",
		"0 100000 1000\n1000 1000 1\n"
	for _, test := range []struct {
		users string
		uid   int
		want  bool
	}{
		{host, overflowUser, true},
		{rootless, overflowUser, true},
		{rootless, 65537, false},
		{remapped, overflowUser, false},
		{remapped, 1000, true},
		{"", overflowUser, false},
		{"nobody", overflowUser, true},
	} {
		if got := mapsUser(test.users, test.uid); got != test.want {
			t.Errorf("user %d in %q: %v, want %v", test.uid, test.users, got, test.want)
		}
	}
}
