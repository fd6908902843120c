package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// reply is what a request gets. After the last one the connection is closed.
type reply struct {
	status int
	body   []byte
	last   bool
}

func refusal(status int, why string) reply {
	body, _ := json.Marshal(map[string]string{"error": why})
	return reply{status: status, body: body, last: status == http.StatusBadRequest}
}

// answer reads a request's body and answers it.
func (s *store) answer(request *http.Request) reply {
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return refusal(http.StatusBadRequest, "a body that is cut off, or a request over 1 MiB")
	}
	digits, found := strings.CutPrefix(request.URL.Path, "/entities/")
	id, err := strconv.ParseInt(digits, 10, 64)
	if !found || err != nil {
		return refusal(http.StatusNotFound, "nothing there: ask for /entities/ and a whole number")
	}
	made := reply{status: http.StatusOK}
	switch request.Method {
	case http.MethodGet:
		entity, known := s.get(id)
		if !known {
			return refusal(http.StatusNotFound, fmt.Sprintf("no entity %d", id))
		}
		made.body, err = json.Marshal(entity)
	case http.MethodPut:
		var entity Entity
		if err := json.Unmarshal(body, &entity); err != nil || entity.ID != id {
			return refusal(http.StatusBadRequest, `needed: {"id":…,"description":…,"value":…}, with the path's id`)
		}
		made.body, err = json.Marshal(map[string]bool{"created": s.put(entity)})
	default:
		return refusal(http.StatusMethodNotAllowed, "allowed: GET, PUT")
	}
	if err != nil {
		return refusal(http.StatusInternalServerError, err.Error())
	}
	return made
}

// bytes is the reply on the wire.
func (r reply) bytes() []byte {
	connection := "keep-alive"
	if r.last {
		connection = "close"
	}
	head := fmt.Appendf(make([]byte, 0, 128+len(r.body)),
		"HTTP/1.1 %d %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\nConnection: %s\r\n\r\n",
		r.status, http.StatusText(r.status), len(r.body), connection)
	return append(head, r.body...)
}
