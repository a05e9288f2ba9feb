// A compiled program as a trainable, with the header cadre/report.h and nothing else: descent on Rosenbrock's function.
//
//     cc -O2 descent.c -o descent
//     cadre tune tune.toml -- ./descent {lr} {momentum}
#include <cadre/report.h>

struct state {
  int step;
  double x[2], v[2];
};

static void save(const char *directory, const struct state *state) {
  char path[4096];
  snprintf(path, sizeof path, "%s/state", directory);
  FILE *file = fopen(path, "wb");
  if (file == NULL || fwrite(state, sizeof *state, 1, file) != 1 || fclose(file) != 0) {
    perror(path);
    exit(1);
  }
}

static void load(const char *directory, struct state *state) {
  char path[4096];
  snprintf(path, sizeof path, "%s/state", directory);
  FILE *file = fopen(path, "rb");
  if (file == NULL || fread(state, sizeof *state, 1, file) != 1 || fclose(file) != 0) {
    perror(path);
    exit(1);
  }
}

int main(int argc, char **argv) {
  if (argc != 3) {
    fprintf(stderr, "usage: %s LR MOMENTUM\n", argv[0]);
    return 2;
  }
  const double lr = atof(argv[1]), momentum = atof(argv[2]);
  struct state state = {0, {-1.2, 1}, {0, 0}};
  if (cadre_checkpoint_in() != NULL) load(cadre_checkpoint_in(), &state);
  while (state.step < 200) {
    for (int i = 0; i < 50; ++i) {
      const double x = state.x[0], y = state.x[1];
      const double slope[2] = {-400 * x * (y - x * x) - 2 * (1 - x), 200 * (y - x * x)};
      for (int k = 0; k < 2; ++k) {
        state.v[k] = momentum * state.v[k] - lr * slope[k];
        state.x[k] += state.v[k];
      }
    }
    ++state.step;
    const double x = state.x[0], y = state.x[1];
    char report[64];
    snprintf(report, sizeof report, "{\"loss\": %.17g}", 100 * (y - x * x) * (y - x * x) + (1 - x) * (1 - x));
    enum cadre_answer answer = cadre_offer(report);
    if (answer == CADRE_CHECKPOINT) {
      save(cadre_checkpoint_out(), &state);
      answer = cadre_saved();
    }
    if (answer != CADRE_CONTINUE) return answer == CADRE_STOP ? 0 : 1;
  }
  return 0;
}
