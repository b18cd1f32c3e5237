package child

import (
	"slices"
	"strings"
)

// withoutProxies returns an environment without the variables of HTTP proxies. The API server only
// calls webhooks and APIs on this machine, under names that no proxy can resolve.
func withoutProxies(environment []string) []string {
	return slices.DeleteFunc(environment, func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		switch strings.ToUpper(name) {
		case "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY":
			return true
		}
		return false
	})
}
