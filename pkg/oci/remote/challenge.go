package remote

import "strings"

// challenge is an authentication challenge of a registry (RFC 9110, "WWW-Authenticate").
type challenge struct {
	// scheme is in lower case.
	scheme string
	params map[string]string
}

// parseChallenges parses the values of WWW-Authenticate. It skips invalid challenges.
func parseChallenges(values []string) []challenge {
	var all []challenge
	for _, v := range values {
		for v != "" {
			var c challenge
			if c, v = parseChallenge(v); c.scheme != "" {
				all = append(all, c)
			}
		}
	}
	return all
}

// parseChallenge parses one challenge and returns the rest of the text.
func parseChallenge(s string) (challenge, string) {
	s = strings.TrimLeft(s, " \t,")
	end := strings.IndexAny(s, " \t,")
	if end < 0 {
		return challenge{scheme: strings.ToLower(s)}, ""
	}
	c := challenge{scheme: strings.ToLower(s[:end]), params: map[string]string{}}
	rest := s[end:]
	for {
		name, value, after, ok := parseParam(rest)
		if !ok {
			return c, strings.TrimLeft(rest, " \t,")
		}
		if _, twice := c.params[name]; !twice {
			c.params[name] = value
		}
		rest = after
	}
}

// parseParam reads name=token or name="quoted".
func parseParam(s string) (name, value, rest string, ok bool) {
	s = strings.TrimLeft(s, " \t,")
	eq := strings.IndexByte(s, '=')
	if eq <= 0 || strings.ContainsAny(s[:eq], " \t,\"") {
		return "", "", "", false
	}
	name, s = strings.ToLower(s[:eq]), s[eq+1:]
	if !strings.HasPrefix(s, `"`) {
		end := strings.IndexAny(s, " \t,")
		if end < 0 {
			end = len(s)
		}
		return name, s[:end], s[end:], true
	}
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch {
		case s[i] == '"':
			return name, b.String(), s[i+1:], true
		case s[i] == '\\' && i+1 < len(s):
			i++
		}
		b.WriteByte(s[i])
	}
	return name, b.String(), "", true
}
