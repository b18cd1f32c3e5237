package fileutil

import (
	"fmt"
	"os"
	"strings"
)

// overflowUser owns the files of users that do not exist in this user namespace. In the
// initial user namespace it is an ordinary user, nobody.
const overflowUser = 65534

// isUnmapped reports whether an owner stands for users outside of this user namespace, such
// as root of the host of a container.
func isUnmapped(uid int) bool {
	if uid != overflowUser {
		return false
	}
	users, err := os.ReadFile("/proc/self/uid_map")
	return err == nil && !mapsUser(string(users), uid)
}

// mapsUser reports whether a user exists in the namespace with a map; see
// user_namespaces(7). An invalid map has every user.
func mapsUser(users string, uid int) bool {
	for line := range strings.Lines(users) {
		var first, outside, count int
		if _, err := fmt.Sscan(line, &first, &outside, &count); err != nil || uid >= first && uid-first < count {
			return true
		}
	}
	return false
}
