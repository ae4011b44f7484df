#include "tests/unit/sentencepiece_library.h"

#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include <sentencepiece_processor.h>
#include <sentencepiece_trainer.h>

struct sentencepiece_model {
    sentencepiece::SentencePieceProcessor processor;
};

namespace {

class Sentences : public sentencepiece::SentenceIterator {
  public:
    Sentences(const char *const *sentences, size_t n) : sentences_(sentences, sentences + n) {}
    bool done() const override { return at_ == sentences_.size(); }
    void Next() override { at_++; }
    const std::string &value() const override { return sentences_[at_]; }
    sentencepiece::util::Status status() const override { return {}; }

  private:
    std::vector<std::string> sentences_;
    size_t at_ = 0;
};

} // namespace

char *sentencepiece_train(const char *options, const char *const *sentences, size_t n_sentences, size_t *size) {
    Sentences iterator(sentences, n_sentences);
    std::string model;
    if (!sentencepiece::SentencePieceTrainer::Train(options, &iterator, &model).ok()) return nullptr;
    char *copy = static_cast<char *>(std::malloc(model.size()));
    std::memcpy(copy, model.data(), model.size());
    *size = model.size();
    return copy;
}

sentencepiece_model *sentencepiece_open(const char *model, size_t size) {
    auto *s = new sentencepiece_model;
    if (s->processor.LoadFromSerializedProto({model, size}).ok()) return s;
    delete s;
    return nullptr;
}

void sentencepiece_close(sentencepiece_model *s) { delete s; }

size_t sentencepiece_encode(const sentencepiece_model *s, const char *text, size_t size, int *ids, size_t n) {
    std::vector<int> all;
    s->processor.Encode({text, size}, &all).IgnoreError();
    for (size_t i = 0; i < all.size() && i < n; i++) ids[i] = all[i];
    return all.size();
}
