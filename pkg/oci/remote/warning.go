package remote

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/xpkg-dev/xpkg/pkg/oci/internal/text"
)

// maxMessage bounds a message of a registry, which can contain a command to run.
const maxMessage = 600

// maxWarnings bounds the warnings of one response that are reported.
const maxWarnings = 20

// warnings returns the warnings in the headers of a response. It ignores values that
// caches add: their codes are not 299, or they name an agent.
func warnings(h http.Header) []string {
	var texts []string
	for _, value := range h.Values("Warning") {
		quoted, ok := strings.CutPrefix(value, "299 - ")
		if !ok || len(texts) == maxWarnings {
			continue
		}
		if message, err := strconv.Unquote(quoted); err == nil && message != "" {
			texts = append(texts, text.ClipTo(printable(message), maxMessage))
		}
	}
	return texts
}
