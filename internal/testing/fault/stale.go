package fault

import "net/http"

// remember keeps the answer to each read of a subject, and gives the old one again
// while reads of the subject are stale. A read that was never made before is
// answered as it is when it is first made.
func (n *Network) remember(next http.RoundTripper, r *http.Request, who string, s *subject) (*http.Response, error) {
	_, old := n.old(who)
	key := r.Header.Get("Accept") + " " + r.URL.String()
	n.mu.Lock()
	a := s.seen[key]
	n.mu.Unlock()
	if old && a != nil {
		return a.response(r), nil
	}
	res, err := next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if a, err = readAnswer(res); err != nil {
		return nil, err
	}
	n.mu.Lock()
	s.seen[key] = a
	n.mu.Unlock()
	return a.response(r), nil
}
