/// \file
/// Reports of a program that is a trainable (cadre/tune/program.h), for C99 and C++; it needs nothing else of Cadre's.
/// In a program that Cadre did not start, all functions do nothing and return CADRE_CONTINUE.
///
///     double loss = restore(cadre_checkpoint_in());
///     for (int epoch = 0; epoch < 10; ++epoch) {
///       loss = train();
///       char report[64];
///       snprintf(report, sizeof report, "{\"loss\": %.17g}", loss);
///       enum cadre_answer answer = cadre_offer(report);
///       if (answer == CADRE_CHECKPOINT) {
///         save(cadre_checkpoint_out());
///         answer = cadre_saved();
///       }
///       if (answer == CADRE_STOP) break;
///     }
#ifndef CADRE_REPORT_H
#define CADRE_REPORT_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/// Answer to a report.
enum cadre_answer {
  CADRE_CONTINUE,    ///< go on
  CADRE_CHECKPOINT,  ///< fill the directory cadre_checkpoint_out(), then call cadre_saved()
  CADRE_STOP,        ///< end: the trial is over, or goes on later from its latest checkpoint
  CADRE_ERROR        ///< the report could not be sent, errno says why: EPIPE or ECONNRESET if Cadre is gone
};

/// Returns the directory of the checkpoint to continue from; NULL: begin anew.
static inline const char* cadre_checkpoint_in(void) { return getenv("CADRE_CHECKPOINT_IN"); }
/// Returns the directory to fill when a checkpoint is asked for; it is empty then. NULL outside Cadre.
static inline const char* cadre_checkpoint_out(void) { return getenv("CADRE_CHECKPOINT_OUT"); }

/// \cond
static inline int cadre_report_fd(void) {
  const char* text = getenv("CADRE_REPORT_FD");
  return text == NULL ? -1 : atoi(text);
}

static inline enum cadre_answer cadre_write(const char* text) {
  size_t left = strlen(text);
  while (left > 0) {
    /* SIGPIPE would end the program; only sockets can do without it, and Cadre gives one. */
    ssize_t written = send(cadre_report_fd(), text, left, MSG_NOSIGNAL);
    if (written < 0 && errno == ENOTSOCK) written = write(cadre_report_fd(), text, left);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return CADRE_ERROR;
    text += written;
    left -= (size_t)written;
  }
  return CADRE_CONTINUE;
}

static inline enum cadre_answer cadre_read(void) {
  char line[64];
  size_t length = 0;
  while (length < sizeof line - 1) {
    const ssize_t count = read(cadre_report_fd(), line + length, 1);
    if (count < 0 && errno == EINTR) continue;
    if (count == 0) errno = EPIPE;
    if (count <= 0) return CADRE_ERROR;
    if (line[length] == '\n') break;
    ++length;
  }
  line[length] = '\0';
  if (strcmp(line, "continue") == 0) return CADRE_CONTINUE;
  if (strcmp(line, "checkpoint") == 0) return CADRE_CHECKPOINT;
  if (strcmp(line, "stop") == 0) return CADRE_STOP;
  errno = EPROTO;
  return CADRE_ERROR;
}

static inline enum cadre_answer cadre_exchange(const char* word, const char* json) {
  if (cadre_report_fd() < 0) return CADRE_CONTINUE;
  if (cadre_write(word) == CADRE_ERROR || cadre_write(json) == CADRE_ERROR || cadre_write("\n") == CADRE_ERROR)
    return CADRE_ERROR;
  return cadre_read();
}
/// \endcond

/// Reports a result, a JSON object on one line, and goes on at once. The program is ended when its trial is.
static inline enum cadre_answer cadre_tell(const char* json) {
  if (cadre_report_fd() < 0) return CADRE_CONTINUE;
  return cadre_write(json) == CADRE_ERROR ? CADRE_ERROR : cadre_write("\n");
}
/// Reports a result and returns when it is on record: CADRE_CONTINUE or CADRE_STOP.
static inline enum cadre_answer cadre_ask(const char* json) { return cadre_exchange("ask ", json); }
/// Does the same; may also return CADRE_CHECKPOINT.
static inline enum cadre_answer cadre_offer(const char* json) { return cadre_exchange("offer ", json); }
/// Says that the checkpoint is complete, and returns the answer to the report: CADRE_CONTINUE or CADRE_STOP.
static inline enum cadre_answer cadre_saved(void) { return cadre_exchange("saved", ""); }

#endif
